#include "server/base/failure_record.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace linnet::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class FailureRecordTest : public ::testing::Test {
 protected:
  std::map<std::string, int> Record(const std::vector<std::string>& ids) {
    auto suspects = RecordFailure(file, ids);
    EXPECT_THAT(suspects, IsOk());
    return suspects.ok() ? *std::move(suspects) : std::map<std::string, int>{};
  }

  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "failures";
};

TEST_F(FailureRecordTest, ReturnsOnlyIdsOfRepeatedFailures) {
  EXPECT_THAT(Record({"innocent-1", "culprit", "innocent-2"}), IsEmpty());
  EXPECT_THAT(Record({"culprit", "innocent-3"}), ElementsAre(Pair("culprit", 2)));
  EXPECT_THAT(Record({"innocent-4"}), IsEmpty());
  EXPECT_THAT(Record({"culprit"}), ElementsAre(Pair("culprit", 3)));
}

TEST_F(FailureRecordTest, KeepsTheLatestThousand) {
  Record({"old"});
  for (int i = 0; i < 10; ++i) {
    std::vector<std::string> ids;
    for (int n = 0; n < 100; ++n) ids.push_back(absl::StrCat(i, "-", n));
    Record(ids);
  }
  EXPECT_THAT(Record({"0-0", "9-99"}), ElementsAre(Pair("0-0", 2), Pair("9-99", 2)));
  EXPECT_THAT(Record({"old"}), IsEmpty());
  std::ifstream stream(file);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1000);
}

TEST_F(FailureRecordTest, DropsLinesThatCannotBeParsed) {
  std::ofstream(file) << "no number\n-1 a\n7\n\n1 good\n" << std::string(100, '\0') << "\n";
  EXPECT_THAT(Record({"a", "good"}), ElementsAre(Pair("good", 2)));
}

// Replicas on one host share the file.
TEST_F(FailureRecordTest, CountsFailuresOfServersThatRecordAtOnce) {
  constexpr int kServers = 4, kFailures = 25;
  std::vector<std::thread> servers;
  for (int i = 0; i < kServers; ++i) {
    servers.emplace_back([&] {
      for (int n = 0; n < kFailures; ++n) EXPECT_THAT(RecordFailure(file, {"culprit"}), IsOk());
    });
  }
  for (std::thread& server : servers) server.join();
  EXPECT_THAT(Record({"culprit"}), ElementsAre(Pair("culprit", kServers * kFailures + 1)));
}

TEST_F(FailureRecordTest, DoesNotWaitForAProcessThatKeepsTheLock) {
  const int other = open((file.string() + ".lock").c_str(), O_RDONLY | O_CREAT, 0444);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  EXPECT_THAT(RecordFailure(file, {"a"}),
              StatusIs(absl::StatusCode::kUnavailable, ::testing::HasSubstr("cannot lock")));
  close(other);
  EXPECT_THAT(Record({"a"}), IsEmpty()) << "it was not recorded, and a lock needs no write access";
}

TEST_F(FailureRecordTest, RefusesFileThatIsNotRegular) {
  for (const char* device : {"/dev/zero", "/dev/full"}) {
    std::filesystem::remove(file);
    std::filesystem::create_symlink(device, file);
    EXPECT_THAT(RecordFailure(file, {"a"}),
                StatusIs(absl::StatusCode::kUnavailable, ::testing::HasSubstr("a device")));
  }
  std::filesystem::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_THAT(RecordFailure(file, {"a"}),
              StatusIs(absl::StatusCode::kUnavailable, ::testing::HasSubstr("a FIFO")));
}

TEST_F(FailureRecordTest, FifosBesideTheFileDoNotStopIt) {
  ASSERT_EQ(mkfifo((file.string() + ".next").c_str(), 0600), 0);
  ASSERT_EQ(mkfifo((file.string() + ".lock").c_str(), 0600), 0);
  EXPECT_THAT(Record({"a"}), IsEmpty());
  EXPECT_THAT(Record({"a"}), ElementsAre(Pair("a", 2)));
}

TEST_F(FailureRecordTest, NamesAFileThatCannotBeWritten) {
  EXPECT_THAT(RecordFailure(folder.path() / "nowhere" / "failures", {"a"}),
              StatusIs(absl::StatusCode::kUnavailable, ::testing::HasSubstr("nowhere")));
}

}  // namespace
}  // namespace linnet::server
