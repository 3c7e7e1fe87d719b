#include "model/ops/ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <random>
#include <vector>

#include "model/ops/isa.h"
#include "model/ops/params.h"
#include "tests/support/reference_conv.h"

// The kernels without torch, on arrays that end where their contents end: what AddressSanitizer can
// see, and Python's tests of the same kernels cannot.
namespace linnet::ops {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// 2e-6: float32 sums of at most 101 terms, with taps good to some units in the last place.
constexpr double kTolerance = 2e-6;

struct Shape {
  int64_t rows, time, channels, heads, width;
};

const std::vector<Shape> kShapes = {
    {2, 9, 32, 4, 3},  {3, 20, 64, 1, 7},  {2, 12, 24, 24, 5}, {1, 1, 16, 2, 31},
    {4, 5, 48, 3, 31}, {3, 7, 130, 2, 15}, {2, 6, 21, 7, 9},   {2, 30, 96, 1, 101},
    {1, 4, 5, 1, 1},   {2, 8, 512, 8, 31},
};

std::vector<float> Numbers(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(count);
  for (float& number : numbers) number = normal(random);
  return numbers;
}

class Kernels : public ::testing::TestWithParam<bool> {
 protected:
  const bool dynamic_ = GetParam();
};

INSTANTIATE_TEST_SUITE_P(Both, Kernels, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Dynamic" : "Light"; });

TEST_P(Kernels, ConvolutionEqualsPlainLoops) {
  for (const Shape& s : kShapes) {
    for (const int64_t padding_left : {int64_t{0}, s.width / 2, s.width - 1}) {
      const auto x = Numbers(s.rows * s.time * s.channels, 1);
      const auto weight = Numbers(s.heads * s.width * (dynamic_ ? s.rows * s.time : 1), 2);
      std::vector<int32_t> lengths(s.rows);
      for (int64_t b = 0; b < s.rows; ++b) lengths[b] = std::max<int64_t>(0, s.time - 3 * b);
      std::vector<float> y(x.size(), -1.0f);
      const ConvolutionParams params = {.type = FloatType::kFloat32,
                                        .dynamic = dynamic_,
                                        .x = x.data(),
                                        .weight = weight.data(),
                                        .lengths = lengths.data(),
                                        .y = y.data(),
                                        .batch = s.rows,
                                        .time = s.time,
                                        .channels = s.channels,
                                        .heads = s.heads,
                                        .width = s.width,
                                        .padding_left = padding_left};
      ConvolutionCpu(params);
      EXPECT_THAT(y, Pointwise(DoubleNear(kTolerance), ReferenceConvolution(params)));
    }
  }
}

TEST_P(Kernels, StepEqualsPlainLoops) {
  for (const Shape& s : kShapes) {
    for (const int32_t position : {0, 1, 7, 40}) {
      const int64_t lanes = s.rows + 2;
      const auto x = Numbers(s.rows * s.channels, 1);
      const auto weight = Numbers(s.heads * s.width * (dynamic_ ? s.rows : 1), 2);
      auto window = Numbers(s.width * lanes * s.channels, 3);
      const std::vector<int32_t> positions(s.rows, position);
      std::vector<int32_t> ancestry;
      for (int64_t r = 0; r < s.rows; ++r) {
        for (int64_t j = 0; j < s.width; ++j) ancestry.push_back((r + j) % s.rows);
        if (r == 2) ancestry[r * s.width] = -1;  // idle
      }
      std::vector<float> y(x.size(), -1.0f);
      auto want_window = window;
      ConvolutionStepParams params = {.type = FloatType::kFloat32,
                                      .dynamic = dynamic_,
                                      .x = x.data(),
                                      .weight = weight.data(),
                                      .window = want_window.data(),
                                      .positions = positions.data(),
                                      .ancestry = ancestry.data(),
                                      .y = y.data(),
                                      .rows = s.rows,
                                      .channels = s.channels,
                                      .heads = s.heads,
                                      .width = s.width,
                                      .lanes = lanes,
                                      .ancestry_stride = s.width};
      const std::vector<double> want = ReferenceStep(params);
      params.window = window.data();
      ConvolutionStepCpu(params);
      EXPECT_THAT(y, Pointwise(DoubleNear(kTolerance), want));
      EXPECT_EQ(window, want_window);
    }
  }
}

TEST(SourceAttention, EqualsPlainLoops) {
  for (const int64_t size : {8, 21, 130, 512}) {
    for (const int64_t heads : {int64_t{1}, size == 21 ? int64_t{7} : int64_t{2}}) {
      const std::vector<int32_t> lengths = {5, 0, 1, 12, 9};
      const int64_t rows = std::ssize(lengths), block_tokens = 4, row_blocks = 3;
      std::vector<int32_t> blocks(rows * row_blocks);
      for (int64_t i = 0; i < std::ssize(blocks); ++i) blocks[i] = i * 7 % std::ssize(blocks);
      const auto query = Numbers(rows * size, 1);
      const auto memory = Numbers(std::ssize(blocks) * block_tokens * 2 * size, 2);
      std::vector<float> y(query.size(), -1.0f);
      const SourceAttentionParams params = {.type = FloatType::kFloat32,
                                            .query = query.data(),
                                            .memory = memory.data(),
                                            .blocks = blocks.data(),
                                            .lengths = lengths.data(),
                                            .y = y.data(),
                                            .rows = rows,
                                            .size = size,
                                            .heads = heads,
                                            .memory_blocks = std::ssize(blocks),
                                            .block_tokens = block_tokens,
                                            .row_blocks = row_blocks};
      SourceAttentionCpu(params);
      EXPECT_THAT(y, Pointwise(DoubleNear(kTolerance), ReferenceAttention(params)));
    }
  }
}

// Linked as a program is that only calls Describe(): the registrations must be there.
TEST(Describe, NamesEachOperatorWithItsDevicesAndTheInstructionSet) {
  const std::string line = Describe();
  EXPECT_THAT(line, HasSubstr(IsaName(HostIsa())));
  for (const char* name : {"dynamic_conv (cpu", "light_conv (cpu", "dynamic_conv_step (cpu",
                           "light_conv_step (cpu", "source_attention (cpu"}) {
    EXPECT_THAT(line, HasSubstr(name));
  }
}

}  // namespace
}  // namespace linnet::ops
