#include "server/identity/token_file.h"

#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace linnet::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFirst[] = "0123456789abcdef first inference\n";
constexpr char kSecond[] = "fedcba9876543210 second inference\n";

struct TokenFileTest : ::testing::Test {
  void Write(const std::string& text) { std::ofstream(path) << text; }
  bool Knows(TokenFile& file, const char* token) {
    return file.table()->Find(std::string(token).substr(0, 16)) != nullptr;
  }
  // Returns what Refresh logs.
  std::string Refresh(TokenFile& file) {
    ::testing::internal::CaptureStderr();
    file.Refresh();
    return ::testing::internal::GetCapturedStderr();
  }
  int Failures() {
    const std::string page = metrics.Text();
    const std::string sample = "linnet_token_reloads_total{result=\"failed\"} ";
    return std::stoi(page.substr(page.find(sample) + sample.size()));
  }

  test::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "tokens";
  Metrics metrics;
};

TEST_F(TokenFileTest, StartFailsWithoutTokens) {
  EXPECT_THAT(TokenFile::Open(path, metrics),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("No such file")));
  Write("0123456789abcdef first everything\n");
  EXPECT_THAT(TokenFile::Open(path, metrics),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("line 1"), HasSubstr(path.string()))));
}

TEST_F(TokenFileTest, RefreshReadsChangedFile) {
  Write(kFirst);
  const auto file = *TokenFile::Open(path, metrics);
  const auto before = std::filesystem::last_write_time(path);
  Write(kSecond);
  std::filesystem::last_write_time(path, before);  // a clock too coarse to tell two writes apart
  EXPECT_THAT(Refresh(*file), AllOf(HasSubstr("tokens_read"), Not(HasSubstr("fedc"))));
  EXPECT_TRUE(Knows(*file, kSecond));
  EXPECT_FALSE(Knows(*file, kFirst)) << "revoked";
  EXPECT_EQ(Refresh(*file), "") << "nothing has changed";
  EXPECT_THAT(metrics.Text(), HasSubstr("linnet_token_reloads_total{result=\"ok\"} 1\n"));
}

TEST_F(TokenFileTest, RetriesFailedReadOfUnchangedFile) {
  Write(kFirst);
  const auto file = *TokenFile::Open(path, metrics);
  Write(kSecond);
  const auto changed = std::filesystem::last_write_time(path);
  std::filesystem::rename(path, folder.path() / "away");  // temporarily unreadable
  EXPECT_THAT(Refresh(*file), HasSubstr("tokens_not_read"));
  EXPECT_TRUE(Knows(*file, kFirst)) << "one failure ends nobody's service";
  std::filesystem::rename(folder.path() / "away", path);
  ASSERT_EQ(std::filesystem::last_write_time(path), changed);
  file->Refresh();
  EXPECT_FALSE(Knows(*file, kFirst)) << "the revoked token is gone with the next read";
  EXPECT_TRUE(Knows(*file, kSecond));
}

TEST_F(TokenFileTest, DeletedFileIsLoggedOnceAndCounted) {
  Write(kFirst);
  const auto file = *TokenFile::Open(path, metrics);
  EXPECT_EQ(Failures(), 0);
  std::filesystem::remove(path);
  EXPECT_THAT(Refresh(*file), AllOf(HasSubstr("tokens_not_read"), HasSubstr("No such file")));
  EXPECT_EQ(Refresh(*file), "");
  EXPECT_EQ(Failures(), 2);
  EXPECT_TRUE(Knows(*file, kFirst));
  Write("nobody\n");
  EXPECT_THAT(Refresh(*file), HasSubstr("line 1")) << "another cause";
  Write(kFirst);
  EXPECT_THAT(Refresh(*file), HasSubstr("tokens_readable_again"));
  EXPECT_EQ(Failures(), 3);
}

TEST_F(TokenFileTest, FifoInPlaceOfTheFileIsAnErrorAndEndsWithTheNextFile) {
  Write(kFirst);
  const auto file = *TokenFile::Open(path, metrics);
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(Refresh(*file), AllOf(HasSubstr("tokens_not_read"), HasSubstr("FIFO")));
  std::filesystem::remove(path);
  Write(kSecond);
  file->Refresh();
  EXPECT_FALSE(Knows(*file, kFirst)) << "revoked";
}

TEST_F(TokenFileTest, LogsEachWrongFileOnce) {
  Write(kFirst);
  const auto file = *TokenFile::Open(path, metrics);
  for (const char* wrong : {"one wrong line\n", "another wrong line\n"}) {
    Write(wrong);
    EXPECT_THAT(Refresh(*file), HasSubstr("tokens_not_read")) << wrong;
    EXPECT_EQ(Refresh(*file), "") << wrong;
  }
}

TEST_F(TokenFileTest, FolderInPlaceOfTheFileKeepsTheTokens) {
  Write(kFirst);
  const auto file = *TokenFile::Open(path, metrics);
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);  // opening it succeeds, reading fails
  EXPECT_THAT(Refresh(*file), AllOf(HasSubstr("tokens_not_read"), HasSubstr("Is a directory")));
  EXPECT_TRUE(Knows(*file, kFirst));
  EXPECT_THAT(TokenFile::Open(path, metrics),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("Is a directory")));
}

TEST_F(TokenFileTest, ReadersSeeWholeTables) {
  Write(kFirst);
  const auto file = *TokenFile::Open(path, metrics);
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> readers;
  for (int t = 0; t < 4; ++t) {
    readers.emplace_back([&] {
      while (!done) {
        const auto table = file->table();
        const Grant* first = table->Find("0123456789abcdef");
        const Grant* second = table->Find("fedcba9876543210");
        if ((first == nullptr) == (second == nullptr)) ++wrong;
        if (first != nullptr && first->name != "first") ++wrong;
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    std::ofstream(folder.path() / "next") << (i % 2 == 0 ? kSecond : kFirst);
    std::filesystem::rename(folder.path() / "next", path);
    file->Refresh();
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace linnet::server
