#include "proto/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "gmock/gmock.h"

namespace linnet {
namespace {

using ::testing::HasSubstr;

class ReadFileTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }

  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / absl::StrCat("read-file-", getpid());
  const std::filesystem::path path = folder / "file";
};

std::string Error(const std::filesystem::path& path, int64_t max_bytes) {
  return ReadFile(path, max_bytes).status().ToString();
}

TEST_F(ReadFileTest, ReadsAllBytesUpToTheLimit) {
  for (const size_t size : {0, 1, 16383, 16384, 16385, 100000}) {
    const std::string bytes(size, 'x');
    std::ofstream(path) << bytes;
    const auto read = ReadFile(path, static_cast<int64_t>(size));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, bytes) << size;
  }
  EXPECT_THAT(Error(path, 99999), HasSubstr("INVALID_ARGUMENT: " + path.string() +
                                            " has 100000 bytes, at most 99999 are read"));
}

TEST_F(ReadFileTest, FollowsLinks) {
  std::ofstream(path) << "text";
  std::filesystem::create_symlink(path, folder / "link");
  EXPECT_EQ(ReadFile(folder / "link", 10).value_or(""), "text");
}

TEST_F(ReadFileTest, ReadsFileWithoutSize) {
  EXPECT_THAT(ReadFile("/proc/self/status", 1 << 20).value_or(""), HasSubstr("VmRSS"));
  EXPECT_THAT(Error("/proc/self/status", 10), HasSubstr("more than 10 bytes"));
}

TEST_F(ReadFileTest, NamesTheReason) {
  EXPECT_THAT(Error(path, 10), HasSubstr("cannot read " + path.string() + ": No such file"));
  EXPECT_THAT(Error(folder, 10), HasSubstr("Is a directory"));
}

TEST_F(ReadFileTest, RefusesFifoWithoutWaiting) {
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(Error(path, 10), HasSubstr("it is a FIFO, not a regular file"));
  const int writer = open(path.c_str(), O_RDWR | O_NONBLOCK);  // one that writes nothing
  ASSERT_GE(writer, 0);
  EXPECT_THAT(Error(path, 10), HasSubstr("FIFO"));
  close(writer);
}

TEST_F(ReadFileTest, RefusesDevice) {
  for (const char* device : {"/dev/zero", "/dev/null"})
    EXPECT_THAT(Error(device, 10), HasSubstr("it is a device"));
}

}  // namespace
}  // namespace linnet
