#include "model/ops/packed_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace linnet::ops {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

// The weights of a model: pieces of odd sizes, one of more than a page.
const std::vector<std::vector<std::byte>>& Pieces() {
  static const auto* const pieces = new std::vector<std::vector<std::byte>>{
      std::vector(100, std::byte{1}), std::vector(300001, std::byte{2}),
      std::vector(65, std::byte{3})};
  return *pieces;
}

struct Loaded {
  std::vector<std::shared_ptr<const std::byte>> pieces;  // null: private
  bool again = false;

  std::vector<bool> shared() const {
    std::vector<bool> all;
    for (const auto& piece : pieces) all.push_back(piece != nullptr);
    return all;
  }
};

Loaded Load(const fs::path& path) {
  Loaded loaded;
  PackedFile file(path);
  for (const auto& piece : Pieces()) {
    loaded.pieces.push_back(file.Share(piece));
    if (loaded.pieces.back() == nullptr) continue;
    EXPECT_TRUE(std::ranges::equal(piece, std::span(loaded.pieces.back().get(), piece.size())));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(loaded.pieces.back().get()) % 64, 0);
  }
  loaded.again = file.Publish();
  return loaded;
}

class PackedFileTest : public ::testing::Test {
 protected:
  PackedFileTest() : path_(folder_.path() / "model.int8.packed") {}

  int files() const { return std::distance(fs::directory_iterator(folder_.path()), {}); }

  test::TemporaryFolder folder_;
  fs::path path_;
};

TEST_F(PackedFileTest, FirstLoadMakesItAndLaterOnesShareIt) {
  const Loaded first = Load(path_);
  EXPECT_THAT(first.shared(), ElementsAre(false, false, false));
  EXPECT_TRUE(first.again);
  const Loaded second = Load(path_);
  EXPECT_THAT(second.shared(), ElementsAre(true, true, true));
  EXPECT_FALSE(second.again);
  EXPECT_EQ(files(), 1);
}

TEST_F(PackedFileTest, ItsMemoryOutlivesTheObjectAndTheFile) {
  Load(path_);
  const Loaded loaded = Load(path_);
  fs::remove(path_);
  EXPECT_TRUE(
      std::ranges::equal(Pieces()[1], std::span(loaded.pieces[1].get(), Pieces()[1].size())));
}

// Each leaves something in the place of a whole file that must not be used, or not all of it.
struct Damage {
  std::string name;
  std::function<void(const fs::path&)> make;
  std::vector<bool> shared;
};

void ReplaceByte(const fs::path& path, int64_t position) {
  fs::permissions(path, fs::perms::owner_write, fs::perm_options::add);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(position);
  file.put('x');
}

void Cut(const fs::path& path, int64_t bytes) {
  fs::permissions(path, fs::perms::owner_write, fs::perm_options::add);
  fs::resize_file(path, bytes);
}

class DamagedPackedFileTest : public PackedFileTest,
                              public ::testing::WithParamInterface<Damage> {};

TEST_P(DamagedPackedFileTest, IsNotUsedAndMadeAgain) {
  Load(path_);
  GetParam().make(path_);
  const Loaded damaged = Load(path_);
  EXPECT_EQ(damaged.shared(), GetParam().shared);
  EXPECT_TRUE(damaged.again);
  EXPECT_THAT(Load(path_).shared(), ElementsAre(true, true, true));
  EXPECT_EQ(files(), 1);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, DamagedPackedFileTest,
    ::testing::Values(
        Damage{"FirstByteChanged", [](auto& path) { ReplaceByte(path, 0); }, {false, false, false}},
        Damage{"MiddleChanged", [](auto& path) { ReplaceByte(path, 5000); }, {true, false, false}},
        Damage{"LastByteChanged",
               [](auto& path) { ReplaceByte(path, fs::file_size(path) - 1); },
               {true, true, false}},
        Damage{"HalfWritten", [](auto& path) { Cut(path, 4096); }, {true, false, false}},
        Damage{"LastByteMissing",
               [](auto& path) { Cut(path, fs::file_size(path) - 1); },
               {true, true, false}},
        Damage{"Empty", [](auto& path) { Cut(path, 0); }, {false, false, false}},
        Damage{"OtherVersion",
               [](auto& path) {
                 fs::remove(path);
                 std::ofstream(path) << std::string(400000, '\2');
               },
               {false, false, false}},
        Damage{"OthersMayWriteIt",
               [](auto& path) {
                 fs::permissions(path, fs::perms::group_write, fs::perm_options::add);
               },
               {false, false, false}},
        Damage{"Fifo",
               [](auto& path) {
                 fs::remove(path);
                 ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
               },
               {false, false, false}}),
    [](const auto& damage) { return damage.param.name; });

TEST_F(PackedFileTest, WithoutAPlaceWeightsStayPrivate) {
  fs::create_directory(path_);  // a file cannot take its place, with any rights of the user
  for (const fs::path& path : {path_, folder_.path() / "none" / "model.int8.packed"}) {
    const Loaded loaded = Load(path);
    EXPECT_THAT(loaded.shared(), ElementsAre(false, false, false));
    EXPECT_FALSE(loaded.again);
  }
  EXPECT_EQ(files(), 1);
}

TEST_F(PackedFileTest, OfTwoFirstLoadsOneMakesTheFile) {
  PackedFile one(path_), two(path_);
  for (const auto& piece : Pieces()) {
    EXPECT_EQ(one.Share(piece), nullptr);
    EXPECT_EQ(two.Share(piece), nullptr);
  }
  EXPECT_TRUE(one.Publish());
  struct stat made {
  }, kept{};
  ASSERT_EQ(stat(path_.c_str(), &made), 0);
  EXPECT_TRUE(two.Publish());
  ASSERT_EQ(stat(path_.c_str(), &kept), 0);
  EXPECT_EQ(made.st_ino, kept.st_ino);
}

TEST_F(PackedFileTest, LoadThatEndsBeforeItPublishesLeavesNothing) {
  PackedFile(path_).Share(Pieces()[0]);
  EXPECT_EQ(files(), 0);
}

TEST_F(PackedFileTest, SharesPiecesOnBothSidesOfAHugePage) {
  constexpr size_t kPage = size_t{2} << 20;
  std::vector<std::vector<std::byte>> pieces;
  // They end before, at and behind the ends of pages of the file, and in their last 63 bytes.
  for (const size_t bytes : {kPage - 1, size_t{65}, kPage - 192, 2 * kPage, 3 * kPage + 1})
    pieces.emplace_back(bytes, static_cast<std::byte>(pieces.size() + 1));
  for (const bool found : {false, true}) {
    PackedFile file(path_);
    for (const auto& piece : pieces) {
      const auto shared = file.Share(piece);
      ASSERT_EQ(shared != nullptr, found);
      if (!found) continue;
      EXPECT_TRUE(std::ranges::equal(piece, std::span(shared.get(), piece.size())));
    }
    EXPECT_EQ(file.Publish(), !found);
  }
}

// KiB of this process in mappings of the file.
int64_t InMappings(const fs::path& path, const std::string& kind) {
  std::ifstream maps("/proc/self/smaps");
  bool there = false;
  int64_t found = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ')) there = line.find(path.string()) != std::string::npos;
    if (there && line.starts_with(kind + ":")) found += std::stoll(line.substr(kind.size() + 1));
  }
  return found;
}

TEST_F(PackedFileTest, LiesInHugePagesWhereFilesDo) {
  const std::vector<std::byte> large(size_t{16} << 20, std::byte{7});
  const auto huge = [&](const fs::path& path) {
    const int descriptor = open(path.c_str(), O_RDONLY);
    auto* const memory = static_cast<const volatile std::byte*>(
        mmap(nullptr, large.size(), PROT_READ, MAP_PRIVATE, descriptor, 0));
    for (size_t i = 0; i < large.size(); i += 4096) static_cast<void>(memory[i]);
    const int64_t kib = InMappings(path, "FilePmdMapped");
    munmap(const_cast<std::byte*>(memory), large.size());
    close(descriptor);
    return kib;
  };
  const fs::path whole = folder_.path() / "whole";
  std::ofstream(whole).close();
  {
    const int descriptor = open(whole.c_str(), O_WRONLY);
    ASSERT_EQ(write(descriptor, large.data(), large.size()), std::ssize(large));
    close(descriptor);
  }
  if (huge(whole) == 0) GTEST_SKIP() << "this file system has no huge pages";
  {
    PackedFile file(path_);
    const std::span<const std::byte> all = large;
    for (size_t i = 0; i < all.size(); i += size_t{1} << 20) file.Share(all.subspan(i, 1 << 20));
    ASSERT_TRUE(file.Publish());
  }
  EXPECT_GE(huge(path_), huge(whole) / 2);
}

TEST_F(PackedFileTest, ProcessesShareItsPages) {
  Load(path_);
  const Loaded here = Load(path_);
  int ready[2], done[2];
  ASSERT_EQ(pipe(ready) + pipe(done), 0);
  const pid_t child = fork();
  if (child == 0) {
    const Loaded there = Load(path_);
    char byte = 0;
    const bool told = write(ready[1], &byte, 1) == 1;
    close(done[1]);
    _exit(told && read(done[0], &byte, 1) == 0 ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  // Dirty until the system has written the file.
  EXPECT_GE(InMappings(path_, "Shared_Clean") + InMappings(path_, "Shared_Dirty"), 290);
  EXPECT_EQ(InMappings(path_, "Private_Clean") + InMappings(path_, "Private_Dirty"), 0);
  EXPECT_LE(InMappings(path_, "Pss"), InMappings(path_, "Rss") / 2 + 4);
  close(done[1]);
  int status = 1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace linnet::ops
