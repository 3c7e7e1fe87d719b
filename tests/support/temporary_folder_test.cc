#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <fstream>

namespace linnet::test {
namespace {

namespace fs = std::filesystem;

TEST(TemporaryFolderTest, IsEmptyAndRemovesItsContent) {
  fs::path path;
  {
    const TemporaryFolder folder;
    path = folder.path();
    EXPECT_TRUE(fs::is_empty(path));
    fs::create_directories(path / "deep/er");
    std::ofstream(path / "deep/er/file") << "content";
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(TemporaryFolderTest, TwoFoldersDiffer) {
  const TemporaryFolder one, other;
  EXPECT_NE(one.path(), other.path());
}

}  // namespace
}  // namespace linnet::test
