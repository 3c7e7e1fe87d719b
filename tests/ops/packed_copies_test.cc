#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <numeric>
#include <vector>

#include "model/ops/cpu/packed_matrix.h"

namespace linnet::ops {
namespace {

int64_t ResidentBytes() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// A search with a shortlist copies the outputs of its tokens for each sequence.
TEST(PackedMatrixTest, CopiesOfOutputsLeaveNoMemoryBehind) {
  constexpr int64_t kOutputs = 2000, kInputs = 256;
  const std::vector<float> weight(kOutputs * kInputs, 1);
  const PackedMatrix all(
      PackedMatrix::Type::kInt8, kOutputs, kInputs,
      [&](int64_t first, int64_t /*count*/) { return &weight[first * kInputs]; });
  std::vector<int32_t> some(kOutputs / 2);
  std::iota(some.begin(), some.end(), 0);
  const auto copy = [&](int times) {
    for (int i = 0; i < times; ++i) EXPECT_EQ(PackedMatrix(all, some).outputs(), kOutputs / 2);
  };
  copy(10);
  const int64_t before = ResidentBytes();
  copy(200);  // 50 MB in all
  EXPECT_LT(ResidentBytes() - before, 8 << 20);
}

}  // namespace
}  // namespace linnet::ops
