#include "model/ops/ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <random>
#include <vector>

#include "model/ops/cpu/isa.h"
#include "model/ops/params.h"
#include "tests/support/reference_conv.h"

// The kernels without torch, on arrays of exact size, so that AddressSanitizer finds accesses
// beyond them, which the Python tests of the same kernels do not.
namespace linnet::ops {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// 2e-6: float32 sums of at most 101 terms, with taps good to some units in the last place.
constexpr double kTolerance = 2e-6;
// 2e-5: without a softmax the taps do not sum up to 1, and 101 products make sums of size 10 to 30.
constexpr double kRawTapsTolerance = 2e-5;

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

// [rows, depth]: rows refer to each other's slots, and the third is idle.
std::vector<int32_t> Backpointers(int64_t rows, int64_t depth) {
  std::vector<int32_t> backpointers;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < depth; ++j) backpointers.push_back((r + j) % rows);
    if (r == 2) backpointers[r * depth] = -1;
  }
  return backpointers;
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
      const int64_t slots = s.rows + 2;
      const auto x = Numbers(s.rows * s.channels, 1);
      const auto weight = Numbers(s.heads * s.width * (dynamic_ ? s.rows : 1), 2);
      auto state = Numbers(s.width * slots * s.channels, 3);
      const std::vector<int32_t> positions(s.rows, position);
      const std::vector<int32_t> backpointers = Backpointers(s.rows, s.width);
      std::vector<float> y(x.size(), -1.0f);
      auto want_window = state;
      ConvolutionStepParams params = {.type = FloatType::kFloat32,
                                      .dynamic = dynamic_,
                                      .x = x.data(),
                                      .weight = weight.data(),
                                      .state = {.data = want_window.data(),
                                                .positions = positions.data(),
                                                .backpointers = backpointers.data(),
                                                .depth = s.width,
                                                .slots = slots,
                                                .size = s.channels,
                                                .backpointers_stride = s.width},
                                      .y = y.data(),
                                      .rows = s.rows,
                                      .channels = s.channels,
                                      .heads = s.heads,
                                      .width = s.width};
      const std::vector<double> want = ReferenceStep(params);
      params.state.data = state.data();
      ConvolutionStepCpu(params);
      EXPECT_THAT(y, Pointwise(DoubleNear(kTolerance), want));
      EXPECT_EQ(state, want_window);
    }
  }
}

TEST(DepthwiseConv, EqualsPlainLoops) {
  for (const Shape& s : kShapes) {
    for (const int64_t dilation : {1, 2, 9}) {
      const int64_t reach = (s.width - 1) * dilation;
      for (const int64_t padding_left : {int64_t{0}, reach / 2, reach}) {
        const auto x = Numbers(s.rows * s.time * s.channels, 1);
        const auto taps = Numbers(s.width * s.channels, 2);
        std::vector<int32_t> lengths(s.rows);
        for (int64_t b = 0; b < s.rows; ++b) lengths[b] = std::max<int64_t>(0, s.time - 3 * b);
        std::vector<float> y(x.size(), -1.0f);
        const DepthwiseConvParams params = {.type = FloatType::kFloat32,
                                            .x = x.data(),
                                            .taps = taps.data(),
                                            .lengths = lengths.data(),
                                            .y = y.data(),
                                            .batch = s.rows,
                                            .time = s.time,
                                            .channels = s.channels,
                                            .width = s.width,
                                            .padding_left = padding_left,
                                            .dilation = dilation};
        DepthwiseConvCpu(params);
        EXPECT_THAT(y, Pointwise(DoubleNear(kRawTapsTolerance), ReferenceDepthwise(params)));
      }
    }
  }
}

TEST(DepthwiseConvStep, EqualsPlainLoops) {
  for (const Shape& s : kShapes) {
    for (const int64_t dilation : {1, 2, 9}) {
      for (const int32_t position : {0, 1, 7, 400}) {
        const int64_t depth = (s.width - 1) * dilation + 1, slots = s.rows + 2;
        const auto x = Numbers(s.rows * s.channels, 1);
        const auto taps = Numbers(s.width * s.channels, 2);
        auto state = Numbers(depth * slots * s.channels, 3);
        const std::vector<int32_t> positions(s.rows, position);
        const std::vector<int32_t> backpointers = Backpointers(s.rows, depth);
        std::vector<float> y(x.size(), -1.0f);
        auto want_window = state;
        DepthwiseConvStepParams params = {.type = FloatType::kFloat32,
                                          .x = x.data(),
                                          .taps = taps.data(),
                                          .state = {.data = want_window.data(),
                                                    .positions = positions.data(),
                                                    .backpointers = backpointers.data(),
                                                    .depth = depth,
                                                    .slots = slots,
                                                    .size = s.channels,
                                                    .backpointers_stride = depth},
                                          .y = y.data(),
                                          .rows = s.rows,
                                          .channels = s.channels,
                                          .width = s.width,
                                          .dilation = dilation};
        const std::vector<double> want = ReferenceDepthwiseStep(params);
        params.state.data = state.data();
        DepthwiseConvStepCpu(params);
        EXPECT_THAT(y, Pointwise(DoubleNear(kRawTapsTolerance), want));
        EXPECT_EQ(state, want_window);
      }
    }
  }
}

TEST(SelfAttentionStep, EqualsPlainLoops) {
  for (const Shape& s : kShapes) {  // the width is the depth of the cache
    for (const int64_t neighbour_heads : {1, 3, 99}) {
      for (const int32_t position : {0, 1, 7, 400}) {
        const int64_t slots = s.rows + 2, count = s.rows * s.channels;
        const auto query = Numbers(count, 1), key = Numbers(count, 2), value = Numbers(count, 3);
        auto cache = Numbers(s.width * slots * 2 * s.channels, 4);
        const std::vector<int32_t> positions(s.rows, position);
        const std::vector<int32_t> backpointers = Backpointers(s.rows, s.width);
        std::vector<float> y(count, -1.0f);
        auto want_cache = cache;
        SelfAttentionStepParams params = {.type = FloatType::kFloat32,
                                          .query = query.data(),
                                          .key = key.data(),
                                          .value = value.data(),
                                          .cache = {.data = want_cache.data(),
                                                    .positions = positions.data(),
                                                    .backpointers = backpointers.data(),
                                                    .depth = s.width,
                                                    .slots = slots,
                                                    .size = 2 * s.channels,
                                                    .backpointers_stride = s.width},
                                          .y = y.data(),
                                          .rows = s.rows,
                                          .size = s.channels,
                                          .heads = s.heads,
                                          .neighbour_heads = neighbour_heads};
        const std::vector<double> want = ReferenceSelfAttention(params);
        params.cache.data = cache.data();
        SelfAttentionStepCpu(params);
        EXPECT_THAT(y, Pointwise(DoubleNear(kTolerance), want));
        EXPECT_EQ(cache, want_cache);
      }
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
                                            .encoder_cache = memory.data(),
                                            .blocks = blocks.data(),
                                            .lengths = lengths.data(),
                                            .y = y.data(),
                                            .rows = rows,
                                            .size = size,
                                            .heads = heads,
                                            .cache_blocks = std::ssize(blocks),
                                            .block_tokens = block_tokens,
                                            .row_blocks = row_blocks};
      SourceAttentionCpu(params);
      EXPECT_THAT(y, Pointwise(DoubleNear(kTolerance), ReferenceAttention(params)));
    }
  }
}

// This binary, like a program that only calls Describe(), must contain the registrations.
TEST(Describe, NamesEachOperatorWithItsDevicesAndTheInstructionSet) {
  const std::string line = Describe();
  EXPECT_THAT(line, HasSubstr(IsaName(HostIsa())));
  for (const char* name :
       {"dynamic_conv (cpu", "light_conv (cpu", "dynamic_conv_step (cpu", "light_conv_step (cpu",
        "depthwise_conv (cpu", "depthwise_conv_step (cpu", "self_attention (cpu)",
        "self_attention_step (cpu", "source_attention (cpu", "source_attention_weights (cpu)",
        "ssru_step (cpu", "best_logits (cpu"}) {
    EXPECT_THAT(line, HasSubstr(name));
  }
}

}  // namespace
}  // namespace linnet::ops
