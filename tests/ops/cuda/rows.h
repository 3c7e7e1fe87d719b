#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "model/ops/params.h"
#include "tests/ops/cuda/array.h"
#include "tests/ops/cuda/memory.h"

namespace linnet::ops {

// `got` is rounded once to its type, `expected` is float32. Tolerances: float32 for another order
// of sums and another exp; half types for the rounding of the result. `factor`: with rounded
// intermediate values.
inline void ExpectClose(const Array& got, const std::vector<float>& expected, float factor = 1) {
  const float tolerance = factor * (got.type == FloatType::kFloat32   ? 1e-5f
                                    : got.type == FloatType::kFloat16 ? 2e-3f
                                                                      : 1e-2f);
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "at " << i;
  }
}

// Rows in a ring: some idle, some at early positions, with random backpointers.
struct Rows {
  std::vector<int32_t> positions, backpointers;
  int64_t slots, reach;

  Rows(int64_t rows, int64_t depth, std::mt19937& random)
      : positions(rows), backpointers(rows * (depth + 2)), slots(rows + 3), reach(depth + 2) {
    std::vector<int32_t> own(slots);
    std::iota(own.begin(), own.end(), 0);
    std::shuffle(own.begin(), own.end(), random);
    for (int64_t r = 0; r < rows; ++r) {
      positions[r] = static_cast<int32_t>(random() % (2 * depth));
      for (int64_t j = 0; j < reach; ++j) backpointers[r * reach + j] = random() % slots;
      backpointers[r * reach] = r % 5 == 3 ? -1 : own[r];
    }
  }

  // No row reads an entry that another one writes in the same step, as the caller must ensure.
  Ring Over(void* data, int64_t depth, int64_t size) {
    return {.data = data,
            .positions = positions.data(),
            .backpointers = backpointers.data(),
            .depth = depth,
            .slots = slots,
            .size = size,
            .backpointers_stride = reach};
  }
  // The same in memory of the kernel.
  Ring On(KernelMemory& memory, Array& data, int64_t depth, int64_t size) {
    Ring ring = Over(memory.Give(data), depth, size);
    ring.positions = memory.Give(positions);
    ring.backpointers = memory.Give(backpointers);
    return ring;
  }
};

// Sets all rows to one position, so that none reads what another one writes.
inline void AtOnePosition(Rows& rows, int32_t position) {
  std::fill(rows.positions.begin(), rows.positions.end(), position);
}

}  // namespace linnet::ops
