// The CUDA kernels that do several operations of a decoder step at once, compared with the CPU's or
// with their formula. Built twice, like kernels_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "model/ops/params.h"
#include "tests/ops/cuda/array.h"
#include "tests/ops/cuda/memory.h"
#include "tests/ops/cuda/rows.h"

namespace linnet::ops {
namespace {

// embed.h in double precision, except that angles are products in float32, as torch has them.
float Embedded(const EmbedParams& p, const std::vector<float>& table,
               const std::vector<float>& positions, int64_t row, int64_t c) {
  const int64_t position = p.positions[row] + p.first_position, half = p.channels / 2;
  const double own = double{table[p.tokens[row] * p.channels + c]} * p.scale;
  if (p.position_table != nullptr) return own + positions[position * p.channels + c];
  if (!p.sinusoids) return own;
  const float frequency = std::exp(static_cast<float>(c % half) * p.log_frequency_step);
  const float angle = static_cast<float>(position) * frequency;
  return own + (c < half ? std::sin(double{angle}) : std::cos(double{angle}));
}

TEST(CudaFusedTest, EmbeddingEqualsTheFormula) {
  std::mt19937 random(11);
  enum class Positions { kNone, kTable, kSinusoids };
  for (FloatType type : kTypes) {
    for (int64_t channels : {2, 36, 512, 1030}) {
      for (Positions kind : {Positions::kNone, Positions::kTable, Positions::kSinusoids}) {
        const int64_t rows = 5, vocabulary = 9, max_positions = 302;
        Array table(type, vocabulary * channels, random);
        Array position_table(type, max_positions * channels, random);
        Array y(type, rows * channels, random);
        std::vector<int64_t> tokens = {0, 8, 3, 3, 1};
        std::vector<int32_t> positions = {0, 1, 299, 40, 7};
        EmbedParams p = {.type = type,
                         .tokens = tokens.data(),
                         .positions = positions.data(),
                         .table = nullptr,
                         .position_table = kind == Positions::kTable ? &position_table : nullptr,
                         .y = nullptr,
                         .rows = rows,
                         .channels = channels,
                         .vocabulary = vocabulary,
                         .max_positions = max_positions,
                         .first_position = 2,
                         .scale = std::sqrt(static_cast<float>(channels)),
                         .sinusoids = kind == Positions::kSinusoids,
                         .log_frequency_step = -std::log(1e4f) / channels * 2};
        std::vector<float> expected(rows * channels);
        for (int64_t i = 0; i < rows * channels; ++i) {
          expected[i] =
              Embedded(p, table.floats, position_table.floats, i / channels, i % channels);
        }
        KernelMemory device;
        p.tokens = device.Give(tokens);
        p.positions = device.Give(positions);
        p.table = device.Give(table);
        if (kind == Positions::kTable) p.position_table = device.Give(position_table);
        p.y = device.Give(y);
        EmbedCuda(p, nullptr);
        device.TakeBack();
        // An exponential may be off by 2 units in the last place, which an angle near 300 makes
        // 7e-5.
        const float tolerance = type == FloatType::kFloat32 ? 1e-4f : 1e-2f;
        for (size_t i = 0; i < expected.size(); ++i) {
          ASSERT_NEAR(y[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "at " << i;
        }
      }
    }
  }
}

TEST(CudaFusedTest, GatedConvolutionStepEqualsTheCpu) {
  std::mt19937 random(12);
  for (FloatType type : kTypes) {
    for (int64_t width : {3, 9, 31}) {
      for (bool gated : {true, false}) {
        for (const auto& [channels, heads] : {std::pair{64, 8}, {36, 4}, {25, 5}, {520, 2}}) {
          SCOPED_TRACE(testing::Message() << "width " << width << ", " << channels << " channels");
          const int64_t count = 7;
          Rows rows(count, width, random);
          AtOnePosition(rows, static_cast<int32_t>(random() % (2 * width)));
          Array z(type, count * channels * (gated ? 2 : 1), random);
          Array weight(type, heads * width * channels, random);
          Array state(type, width * rows.slots * channels, random), y = z;
          weight.Scale(1 / std::sqrt(static_cast<float>(channels)));
          std::vector<float> expected(count * channels), expected_state = state.floats;
          GatedConvStepParams p = {.type = FloatType::kFloat32,
                                   .gated = gated,
                                   .z = z.floats.data(),
                                   .taps_weight = weight.floats.data(),
                                   .state = rows.Over(expected_state.data(), width, channels),
                                   .y = expected.data(),
                                   .rows = count,
                                   .channels = channels,
                                   .heads = heads,
                                   .width = width};
          GatedConvStepCpu(p);
          KernelMemory device;
          p.type = type;
          p.z = device.Give(z);
          p.taps_weight = device.Give(weight);
          p.state = rows.On(device, state, p.state.depth, p.state.size);
          p.y = device.Give(y);
          GatedConvStepCuda(p, nullptr);
          device.TakeBack();
          // The gated inputs are rounded to the type before the projection, the CPU's are float32.
          ExpectClose(y, expected, gated ? 4 : 1);
          ExpectClose(state, expected_state);
        }
      }
    }
  }
}

// Neighbouring rows with one source share a warp from 32 rows on. Groups of 1, 5, 9 and 40 rows,
// with idle rows between them, are cut at the rows of a warp.
TEST(CudaFusedTest, SourceAttentionOfBeamsEqualsTheCpu) {
  std::mt19937 random(13);
  for (FloatType type : kTypes) {
    for (const auto& [size, heads] : {std::pair{64, 4}, {96, 2}, {128, 1}, {512, 2}, {36, 3}}) {
      const int64_t block_tokens = 4, cache_blocks = 23, row_blocks = 12;
      std::vector<int32_t> blocks, lengths;
      for (int group : {1, 5, 0, 9, 40, 5, 5, 0, 0, 1, 2}) {
        std::vector<int32_t> own(row_blocks);
        for (int32_t& block : own) block = random() % cache_blocks;
        const int32_t length = group == 0 ? 0 : 1 + random() % (row_blocks * block_tokens);
        for (int i = 0; i < std::max(group, 1); ++i) {
          // Entries after the source's blocks are never used and may differ.
          own.back() = length > (row_blocks - 1) * block_tokens ? own.back()
                                                                : static_cast<int32_t>(random());
          blocks.insert(blocks.end(), own.begin(), own.end());
          lengths.push_back(length);
        }
      }
      const int64_t count = std::ssize(lengths);
      ASSERT_GE(count, 32);
      Array query(type, count * size, random), y = query;
      Array memory(type, cache_blocks * block_tokens * 2 * size, random);
      std::vector<float> expected(y.floats.size());
      SourceAttentionParams p = {.type = FloatType::kFloat32,
                                 .query = query.floats.data(),
                                 .encoder_cache = memory.floats.data(),
                                 .blocks = blocks.data(),
                                 .lengths = lengths.data(),
                                 .y = expected.data(),
                                 .rows = count,
                                 .size = size,
                                 .heads = heads,
                                 .cache_blocks = cache_blocks,
                                 .block_tokens = block_tokens,
                                 .row_blocks = row_blocks};
      SourceAttentionCpu(p);
      const auto attend = [&, size = size](int64_t first, int64_t rows, Array& to) {
        KernelMemory device;
        SourceAttentionParams own = p;
        own.type = type;
        own.rows = rows;
        const int64_t bytes = type == FloatType::kFloat32 ? 4 : 2;
        own.query = static_cast<const char*>(device.Give(query)) + first * size * bytes;
        own.encoder_cache = device.Give(memory);
        own.y = static_cast<char*>(device.Give(to)) + first * size * bytes;
        own.blocks = device.Give(blocks) + first * row_blocks;
        own.lengths = device.Give(lengths) + first;
        SourceAttentionCuda(own, nullptr);
        device.TakeBack();
      };
      attend(0, count, y);
      ExpectClose(y, expected);
      // Alone each row has the same bits.
      Array alone = y;
      for (int64_t row = 0; row < count; ++row) attend(row, 1, alone);
      for (int64_t i = 0; i < count * size; ++i) ASSERT_EQ(alone[i], y[i]) << "at " << i;
    }
  }
}

}  // namespace
}  // namespace linnet::ops
