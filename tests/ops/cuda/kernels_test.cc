// The CUDA kernels compared with the CPU's. Built twice: cuda_kernels_test emulates them on the CPU
// (emulation.h lists what that can find), cuda_kernels_gpu_test runs them on a GPU, without
// torch, so that compute-sanitizer takes seconds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "model/ops/params.h"
#include "tests/ops/cuda/array.h"
#include "tests/ops/cuda/memory.h"
#include "tests/ops/cuda/rows.h"

namespace linnet::ops {
namespace {

TEST(CudaKernelsTest, ConvolutionStepsEqualTheCpu) {
  std::mt19937 random(1);
  for (FloatType type : kTypes) {
    for (int64_t width : {3, 5, 7, 9, 15, 31}) {
      for (bool dynamic : {true, false}) {
        for (const auto& [channels, heads] : {std::pair{64, 8}, {36, 4}, {24, 24}, {520, 2}}) {
          SCOPED_TRACE(testing::Message() << "width " << width << ", " << channels << " channels");
          const int64_t count = 7;
          Rows rows(count, width, random);
          AtOnePosition(rows, static_cast<int32_t>(random() % (2 * width)));
          Array x(type, count * channels, random), y = x;
          Array weight(type, (dynamic ? count : 1) * heads * width, random);
          Array state(type, width * rows.slots * channels, random);
          std::vector<float> expected(y.floats.size()), expected_window = state.floats;
          ConvolutionStepParams p = {.type = FloatType::kFloat32,
                                     .dynamic = dynamic,
                                     .x = x.floats.data(),
                                     .weight = weight.floats.data(),
                                     .state = rows.Over(expected_window.data(), width, channels),
                                     .y = expected.data(),
                                     .rows = count,
                                     .channels = channels,
                                     .heads = heads,
                                     .width = width};
          ConvolutionStepCpu(p);
          KernelMemory device;
          p.type = type;
          p.x = device.Give(x);
          p.weight = device.Give(weight);
          p.state = rows.On(device, state, p.state.depth, p.state.size);
          p.y = device.Give(y);
          ConvolutionStepCuda(p, nullptr);
          device.TakeBack();
          ExpectClose(y, expected);
          for (size_t i = 0; i < expected_window.size(); ++i)
            ASSERT_EQ(state[i], expected_window[i]);
        }
      }
    }
  }
}

TEST(CudaKernelsTest, DepthwiseStepsEqualTheCpu) {
  std::mt19937 random(2);
  for (FloatType type : kTypes) {
    for (int64_t width : {3, 9, 15}) {
      for (int64_t dilation : {1, 3}) {
        for (int64_t channels : {64, 37, 520}) {
          const int64_t count = 6, depth = (width - 1) * dilation + 1;
          Rows rows(count, depth, random);
          AtOnePosition(rows, static_cast<int32_t>(random() % (2 * depth)));
          Array x(type, count * channels, random), y = x, taps(type, width * channels, random);
          Array state(type, depth * rows.slots * channels, random);
          std::vector<float> expected(y.floats.size()), expected_window = state.floats;
          DepthwiseConvStepParams p = {.type = FloatType::kFloat32,
                                       .x = x.floats.data(),
                                       .taps = taps.floats.data(),
                                       .state = rows.Over(expected_window.data(), depth, channels),
                                       .y = expected.data(),
                                       .rows = count,
                                       .channels = channels,
                                       .width = width,
                                       .dilation = dilation};
          DepthwiseConvStepCpu(p);
          KernelMemory device;
          p.type = type;
          p.x = device.Give(x);
          p.taps = device.Give(taps);
          p.state = rows.On(device, state, p.state.depth, p.state.size);
          p.y = device.Give(y);
          DepthwiseConvStepCuda(p, nullptr);
          device.TakeBack();
          ExpectClose(y, expected);
          for (size_t i = 0; i < expected_window.size(); ++i)
            ASSERT_EQ(state[i], expected_window[i]);
        }
      }
    }
  }
}

TEST(CudaKernelsTest, ConvolutionsEqualTheCpu) {
  std::mt19937 random(3);
  for (FloatType type : kTypes) {
    for (const auto& [time, width] : {std::pair{1, 3}, {9, 7}, {40, 31}, {23, 9}}) {
      for (const auto& [channels, heads] : {std::pair{32, 4}, {36, 36}}) {
        const int64_t batch = 2;
        std::vector<int32_t> lengths = {time, time / 2};
        Array x(type, batch * time * channels, random), y = x;
        Array weight(type, batch * time * heads * width, random);
        Array taps(type, width * channels, random);
        std::vector<float> expected(y.floats.size());
        for (bool dynamic : {true, false}) {
          ConvolutionParams p = {.type = FloatType::kFloat32,
                                 .dynamic = dynamic,
                                 .x = x.floats.data(),
                                 .weight = weight.floats.data(),
                                 .lengths = lengths.data(),
                                 .y = expected.data(),
                                 .batch = batch,
                                 .time = time,
                                 .channels = channels,
                                 .heads = heads,
                                 .width = width,
                                 .padding_left = width / 2};
          ConvolutionCpu(p);
          KernelMemory device;
          p.type = type;
          p.x = device.Give(x);
          p.weight = device.Give(weight);
          p.y = device.Give(y);
          p.lengths = device.Give(lengths);
          ConvolutionCuda(p, nullptr);
          device.TakeBack();
          ExpectClose(y, expected);
        }
        DepthwiseConvParams p = {.type = FloatType::kFloat32,
                                 .x = x.floats.data(),
                                 .taps = taps.floats.data(),
                                 .lengths = lengths.data(),
                                 .y = expected.data(),
                                 .batch = batch,
                                 .time = time,
                                 .channels = channels,
                                 .width = width,
                                 .padding_left = width - 1,
                                 .dilation = 1};
        DepthwiseConvCpu(p);
        KernelMemory device;
        p.type = type;
        p.x = device.Give(x);
        p.taps = device.Give(taps);
        p.y = device.Give(y);
        p.lengths = device.Give(lengths);
        DepthwiseConvCuda(p, nullptr);
        device.TakeBack();
        ExpectClose(y, expected);
      }
    }
  }
}

// Sequences in blocks (first_position.h), with unused rows among them and behind them.
struct Blocks {
  static constexpr int kTime = 16;
  std::vector<int32_t> lengths, starts;

  Blocks() {
    for (int32_t length : {1, 16, 0, 17, 45, 33, 0, 70, 0}) {
      for (int32_t start = 0; start == 0 || start < length; start += kTime) {
        lengths.push_back(length);
        starts.push_back(start);
      }
    }
  }
  int64_t batch() const { return std::ssize(lengths); }
};

TEST(CudaKernelsTest, ConvolutionsOfBlocksEqualTheCpu) {
  std::mt19937 random(9);
  Blocks blocks;
  for (FloatType type : kTypes) {
    for (int64_t width : {3, 9, 31}) {
      for (const auto& [channels, heads] : {std::pair{32, 4}, {36, 36}, {140, 2}}) {
        const int64_t positions = blocks.batch() * Blocks::kTime;
        Array x(type, positions * channels, random), y = x;
        Array weight(type, positions * heads * width, random);
        Array taps(type, width * channels, random);
        std::vector<float> expected(y.floats.size());
        for (bool dynamic : {true, false}) {
          ConvolutionParams p = {.type = FloatType::kFloat32,
                                 .dynamic = dynamic,
                                 .x = x.floats.data(),
                                 .weight = weight.floats.data(),
                                 .lengths = blocks.lengths.data(),
                                 .y = expected.data(),
                                 .batch = blocks.batch(),
                                 .time = Blocks::kTime,
                                 .channels = channels,
                                 .heads = heads,
                                 .width = width,
                                 .padding_left = width / 2,
                                 .starts = blocks.starts.data()};
          ConvolutionCpu(p);
          KernelMemory device;
          p.type = type;
          p.x = device.Give(x);
          p.weight = device.Give(weight);
          p.y = device.Give(y);
          p.lengths = device.Give(blocks.lengths);
          p.starts = device.Give(blocks.starts);
          ConvolutionCuda(p, nullptr);
          device.TakeBack();
          ExpectClose(y, expected);
        }
        for (int64_t dilation : {1, 3, 20}) {
          DepthwiseConvParams p = {.type = FloatType::kFloat32,
                                   .x = x.floats.data(),
                                   .taps = taps.floats.data(),
                                   .lengths = blocks.lengths.data(),
                                   .y = expected.data(),
                                   .batch = blocks.batch(),
                                   .time = Blocks::kTime,
                                   .channels = channels,
                                   .width = width,
                                   .padding_left = (width - 1) * dilation / 2,
                                   .dilation = dilation,
                                   .starts = blocks.starts.data()};
          DepthwiseConvCpu(p);
          KernelMemory device;
          p.type = type;
          p.x = device.Give(x);
          p.taps = device.Give(taps);
          p.y = device.Give(y);
          p.lengths = device.Give(blocks.lengths);
          p.starts = device.Give(blocks.starts);
          DepthwiseConvCuda(p, nullptr);
          device.TakeBack();
          ExpectClose(y, expected);
        }
      }
    }
  }
}

TEST(CudaKernelsTest, SelfAttentionOfSequencesEqualsTheCpu) {
  std::mt19937 random(10);
  Blocks blocks;
  std::vector<int32_t> padded = {40, 7, 0, 33};
  for (FloatType type : kTypes) {
    // Heads of 12 and 65 channels do not consist of whole packs, and are not aligned.
    for (const auto& [size, heads] : {std::pair{64, 4}, {36, 3}, {130, 2}, {512, 2}}) {
      for (bool in_blocks : {true, false}) {
        const int64_t batch = in_blocks ? blocks.batch() : std::ssize(padded);
        const int64_t time = in_blocks ? Blocks::kTime : 40;
        std::vector<int32_t>& lengths = in_blocks ? blocks.lengths : padded;
        Array x(type, batch * time * 3 * size, random), y(type, batch * time * size, random);
        std::vector<float> expected(y.floats.size());
        SelfAttentionParams p = {.type = FloatType::kFloat32,
                                 .query_key_value = x.floats.data(),
                                 .lengths = lengths.data(),
                                 .y = expected.data(),
                                 .batch = batch,
                                 .time = time,
                                 .size = size,
                                 .heads = heads,
                                 .starts = in_blocks ? blocks.starts.data() : nullptr};
        SelfAttentionCpu(p);
        KernelMemory device;
        p.type = type;
        p.query_key_value = device.Give(x);
        p.y = device.Give(y);
        p.lengths = device.Give(lengths);
        if (in_blocks) p.starts = device.Give(blocks.starts);
        SelfAttentionCuda(p, nullptr);
        device.TakeBack();
        ExpectClose(y, expected);
      }
    }
  }
}

TEST(CudaKernelsTest, SourceAttentionEqualsTheCpu) {
  std::mt19937 random(4);
  for (FloatType type : kTypes) {
    // Heads of 12 and 65 channels do not consist of whole packs, and are not aligned.
    for (const auto& [size, heads] :
         {std::pair{64, 4}, {96, 2}, {40, 1}, {512, 2}, {36, 3}, {130, 2}}) {
      const int64_t count = 5, block_tokens = 4, cache_blocks = 9, row_blocks = 20;
      Array query(type, count * size, random), y = query;
      Array memory(type, cache_blocks * block_tokens * 2 * size, random);
      std::vector<int32_t> blocks(count * row_blocks), lengths = {0, 1, 33, 80, 64};
      for (int32_t& block : blocks) block = random() % cache_blocks;
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
      KernelMemory device;
      p.type = type;
      p.query = device.Give(query);
      p.encoder_cache = device.Give(memory);
      p.y = device.Give(y);
      p.blocks = device.Give(blocks);
      p.lengths = device.Give(lengths);
      SourceAttentionCuda(p, nullptr);
      device.TakeBack();
      ExpectClose(y, expected);
    }
  }
}

TEST(CudaKernelsTest, SelfAttentionEqualsTheCpu) {
  std::mt19937 random(5);
  for (FloatType type : kTypes) {
    for (const auto& [size, heads] : {std::pair{64, 4}, {96, 2}, {36, 3}, {195, 3}, {512, 2}}) {
      for (int64_t neighbours : {1, 3}) {
        for (int32_t position : {0, 4, 39, 70}) {
          const int64_t count = 6, depth = 40;
          Rows rows(count, depth, random);
          AtOnePosition(rows, position);
          Array query(type, count * size, random), key(type, count * size, random),
              value(type, count * size, random), y = query;
          Array cache(type, depth * rows.slots * 2 * size, random);
          std::vector<float> expected(y.floats.size()), expected_cache = cache.floats;
          SelfAttentionStepParams p = {.type = FloatType::kFloat32,
                                       .query = query.floats.data(),
                                       .key = key.floats.data(),
                                       .value = value.floats.data(),
                                       .cache = rows.Over(expected_cache.data(), depth, 2 * size),
                                       .y = expected.data(),
                                       .rows = count,
                                       .size = size,
                                       .heads = heads,
                                       .neighbour_heads = neighbours};
          SelfAttentionStepCpu(p);
          KernelMemory device;
          p.type = type;
          p.query = device.Give(query);
          p.key = device.Give(key);
          p.value = device.Give(value);
          p.cache = rows.On(device, cache, p.cache.depth, p.cache.size);
          p.y = device.Give(y);
          SelfAttentionStepCuda(p, nullptr);
          device.TakeBack();
          ExpectClose(y, expected);
          for (size_t i = 0; i < expected_cache.size(); ++i) ASSERT_EQ(cache[i], expected_cache[i]);
        }
      }
    }
  }
}

TEST(CudaKernelsTest, SsruStepsEqualTheCpu) {
  std::mt19937 random(6);
  for (FloatType type : kTypes) {
    for (int64_t channels : {1, 37, 64, 520}) {
      for (int32_t position : {0, 1, 6}) {
        SCOPED_TRACE(testing::Message() << channels << " channels, position " << position);
        const int64_t count = 6, depth = 2;
        Rows rows(count, depth, random);
        AtOnePosition(rows, position);
        Array projected(type, count * 2 * channels, random), y(type, count * channels, random);
        Array state(FloatType::kFloat32, depth * rows.slots * channels, random);
        std::vector<float> expected(y.floats.size()), expected_state = state.floats;
        SsruStepParams p = {.type = FloatType::kFloat32,
                            .projected = projected.floats.data(),
                            .state = rows.Over(expected_state.data(), depth, channels),
                            .y = expected.data(),
                            .rows = count,
                            .channels = channels};
        SsruStepCpu(p);
        KernelMemory device;
        p.type = type;
        p.projected = device.Give(projected);
        p.state = rows.On(device, state, depth, channels);
        p.y = device.Give(y);
        SsruStepCuda(p, nullptr);
        device.TakeBack();
        ExpectClose(y, expected);
        ExpectClose(state, expected_state);
      }
    }
  }
}

TEST(CudaKernelsTest, AddNormEqualsTheCpu) {
  std::mt19937 random(8);
  for (FloatType type : kTypes) {
    for (int64_t channels : {1, 37, 64, 512, 1024, 1030, 12800}) {
      const int64_t rows = 3;
      Array x(type, rows * channels, random), residual(type, rows * channels, random), y = x;
      Array weight(type, channels, random), bias(type, channels, random), sum = x;
      std::vector<float> expected(y.floats.size()), expected_sum = expected;
      AddNormParams p = {.type = FloatType::kFloat32,
                         .x = x.floats.data(),
                         .residual = residual.floats.data(),
                         .weight = weight.floats.data(),
                         .bias = bias.floats.data(),
                         .sum = expected_sum.data(),
                         .y = expected.data(),
                         .rows = rows,
                         .channels = channels,
                         .epsilon = 1e-3f};
      AddNormCpu(p);
      KernelMemory device;
      p.type = type;
      p.x = device.Give(x);
      p.residual = device.Give(residual);
      p.weight = device.Give(weight);
      p.bias = device.Give(bias);
      p.sum = device.Give(sum);
      p.y = device.Give(y);
      AddNormCuda(p, nullptr);
      device.TakeBack();
      ExpectClose(y, expected);
      ExpectClose(sum, expected_sum);
    }
  }
}

}  // namespace
}  // namespace linnet::ops
