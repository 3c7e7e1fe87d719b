#include "model/ops/huge_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace linnet::ops {
namespace {

constexpr size_t kPage = size_t{2} << 20;

bool IsZero(const std::byte* memory, size_t bytes) {
  return std::all_of(memory, memory + bytes, [](std::byte b) { return b == std::byte{0}; });
}

TEST(ZerosInHugePagesTest, PiecesAreZeroAlignedAndApart) {
  std::vector<std::shared_ptr<std::byte>> pieces;
  for (size_t bytes : {size_t{1}, size_t{64}, size_t{1000}, kPage - 1, kPage, kPage + 1, 5 * kPage})
    for (int i = 0; i < 5; ++i) {
      pieces.push_back(ZerosInHugePages(bytes));
      std::byte* const memory = pieces.back().get();
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0);
      EXPECT_TRUE(IsZero(memory, bytes)) << bytes;
      std::fill_n(memory, bytes, std::byte{0xff});  // would show in a piece that overlaps
    }
}

TEST(ZerosInHugePagesTest, APieceOutlivesItsNeighbours) {
  auto first = ZerosInHugePages(100);
  auto kept = ZerosInHugePages(100);
  *kept = std::byte{7};
  first.reset();
  EXPECT_EQ(*kept, std::byte{7});
  kept.reset();
  EXPECT_TRUE(IsZero(ZerosInHugePages(100).get(), 100));
}

#ifndef __SANITIZE_ADDRESS__  // which ends the process
TEST(ZerosInHugePagesTest, MemoryThatThereIsNotIsAnError) {
  EXPECT_THROW(ZerosInHugePages(size_t{1} << 60), std::bad_alloc);
}
#endif

}  // namespace
}  // namespace linnet::ops
