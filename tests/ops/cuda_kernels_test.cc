// The CUDA kernels, emulated on the CPU, against the CPU's own: cuda_emulation.h says what that
// shows and what it does not.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "model/ops/beam_body.h"
#include "model/ops/params.h"

namespace linnet::ops {
namespace {

// Values of one floating point type, and what they are in float32.
struct Array {
  FloatType type;
  std::vector<float> floats;
  std::vector<uint16_t> halves;

  Array(FloatType type, int64_t size, std::mt19937& random) : type(type), floats(size) {
    std::normal_distribution<float> normal;
    for (float& value : floats) value = normal(random);
    halves.resize(size);
    for (int64_t i = 0; i < size; ++i) {
      if (type == FloatType::kFloat16) {
        halves[i] = __half_as_ushort(__float2half_rn(floats[i]));
      } else if (type == FloatType::kBFloat16) {
        halves[i] = __bfloat16_as_ushort(__float2bfloat16_rn(floats[i]));
      }
      if (!wide()) floats[i] = (*this)[i];
    }
  }

  bool wide() const { return type == FloatType::kFloat32; }
  void* data() { return wide() ? static_cast<void*>(floats.data()) : halves.data(); }
  float operator[](int64_t i) const {
    if (wide()) return floats[i];
    if (type == FloatType::kFloat16) return __half2float(__ushort_as_half(halves[i]));
    return __bfloat162float(__ushort_as_bfloat16(halves[i]));
  }
};

// `got` is of a type that rounds once, `expected` is float32. float32: another order of sums and
// another exp; halves: the rounding of the result.
void ExpectClose(const Array& got, const std::vector<float>& expected) {
  const float tolerance = got.type == FloatType::kFloat32   ? 1e-5f
                          : got.type == FloatType::kFloat16 ? 2e-3f
                                                            : 1e-2f;
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "at " << i;
  }
}

constexpr FloatType kTypes[] = {FloatType::kFloat32, FloatType::kBFloat16, FloatType::kFloat16};

// Rows in a ring: some idle, some young, with any lanes in their past.
struct Rows {
  std::vector<int32_t> positions, ancestry;
  int64_t lanes, reach;

  Rows(int64_t rows, int64_t depth, std::mt19937& random)
      : positions(rows), ancestry(rows * (depth + 2)), lanes(rows + 3), reach(depth + 2) {
    std::vector<int32_t> own(lanes);
    std::iota(own.begin(), own.end(), 0);
    std::shuffle(own.begin(), own.end(), random);
    for (int64_t r = 0; r < rows; ++r) {
      positions[r] = static_cast<int32_t>(random() % (2 * depth));
      for (int64_t j = 0; j < reach; ++j) ancestry[r * reach + j] = random() % lanes;
      ancestry[r * reach] = r % 5 == 3 ? -1 : own[r];
    }
  }

  // What a row reads is never what another writes in the same step: the caller's promise.
  Ring Over(void* data, int64_t depth, int64_t size) {
    return {.data = data,
            .positions = positions.data(),
            .ancestry = ancestry.data(),
            .depth = depth,
            .lanes = lanes,
            .size = size,
            .ancestry_stride = reach};
  }
};

// Rows at one position, so that none reads what another writes.
void AtOnePosition(Rows& rows, int32_t position) {
  std::fill(rows.positions.begin(), rows.positions.end(), position);
}

TEST(CudaKernelsTest, ConvolutionStepsAreThoseOfTheCpu) {
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
          Array window(type, width * rows.lanes * channels, random);
          std::vector<float> expected(y.floats.size()), expected_window = window.floats;
          ConvolutionStepParams p = {.type = FloatType::kFloat32,
                                     .dynamic = dynamic,
                                     .x = x.floats.data(),
                                     .weight = weight.floats.data(),
                                     .window = rows.Over(expected_window.data(), width, channels),
                                     .y = expected.data(),
                                     .rows = count,
                                     .channels = channels,
                                     .heads = heads,
                                     .width = width};
          ConvolutionStepCpu(p);
          p.type = type;
          p.x = x.data();
          p.weight = weight.data();
          p.window.data = window.data();
          p.y = y.data();
          ConvolutionStepCuda(p, nullptr);
          ExpectClose(y, expected);
          for (size_t i = 0; i < expected_window.size(); ++i)
            ASSERT_EQ(window[i], expected_window[i]);
        }
      }
    }
  }
}

TEST(CudaKernelsTest, DepthwiseStepsAreThoseOfTheCpu) {
  std::mt19937 random(2);
  for (FloatType type : kTypes) {
    for (int64_t width : {3, 9, 15}) {
      for (int64_t dilation : {1, 3}) {
        for (int64_t channels : {64, 37, 520}) {
          const int64_t count = 6, depth = (width - 1) * dilation + 1;
          Rows rows(count, depth, random);
          AtOnePosition(rows, static_cast<int32_t>(random() % (2 * depth)));
          Array x(type, count * channels, random), y = x, taps(type, width * channels, random);
          Array window(type, depth * rows.lanes * channels, random);
          std::vector<float> expected(y.floats.size()), expected_window = window.floats;
          DepthwiseConvStepParams p = {.type = FloatType::kFloat32,
                                       .x = x.floats.data(),
                                       .taps = taps.floats.data(),
                                       .window = rows.Over(expected_window.data(), depth, channels),
                                       .y = expected.data(),
                                       .rows = count,
                                       .channels = channels,
                                       .width = width,
                                       .dilation = dilation};
          DepthwiseConvStepCpu(p);
          p.type = type;
          p.x = x.data();
          p.taps = taps.data();
          p.window.data = window.data();
          p.y = y.data();
          DepthwiseConvStepCuda(p, nullptr);
          ExpectClose(y, expected);
          for (size_t i = 0; i < expected_window.size(); ++i)
            ASSERT_EQ(window[i], expected_window[i]);
        }
      }
    }
  }
}

TEST(CudaKernelsTest, WholeConvolutionsAreThoseOfTheCpu) {
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
          p.type = type;
          p.x = x.data();
          p.weight = weight.data();
          p.y = y.data();
          ConvolutionCuda(p, nullptr);
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
        p.type = type;
        p.x = x.data();
        p.taps = taps.data();
        p.y = y.data();
        DepthwiseConvCuda(p, nullptr);
        ExpectClose(y, expected);
      }
    }
  }
}

TEST(CudaKernelsTest, AttentionToASourceIsThatOfTheCpu) {
  std::mt19937 random(4);
  for (FloatType type : kTypes) {
    for (const auto& [size, heads] : {std::pair{64, 4}, {96, 2}, {40, 1}, {512, 2}}) {
      const int64_t count = 5, block_tokens = 4, memory_blocks = 9, row_blocks = 8;
      Array query(type, count * size, random), y = query;
      Array memory(type, memory_blocks * block_tokens * 2 * size, random);
      std::vector<int32_t> blocks(count * row_blocks), lengths = {0, 1, 13, 32, 7};
      for (int32_t& block : blocks) block = random() % memory_blocks;
      std::vector<float> expected(y.floats.size());
      SourceAttentionParams p = {.type = FloatType::kFloat32,
                                 .query = query.floats.data(),
                                 .memory = memory.floats.data(),
                                 .blocks = blocks.data(),
                                 .lengths = lengths.data(),
                                 .y = expected.data(),
                                 .rows = count,
                                 .size = size,
                                 .heads = heads,
                                 .memory_blocks = memory_blocks,
                                 .block_tokens = block_tokens,
                                 .row_blocks = row_blocks};
      SourceAttentionCpu(p);
      p.type = type;
      p.query = query.data();
      p.memory = memory.data();
      p.y = y.data();
      SourceAttentionCuda(p, nullptr);
      ExpectClose(y, expected);
    }
  }
}

TEST(CudaKernelsTest, AttentionToTheTargetIsThatOfTheCpu) {
  std::mt19937 random(5);
  for (FloatType type : kTypes) {
    for (const auto& [size, heads] : {std::pair{64, 4}, {96, 2}}) {
      for (int64_t neighbours : {1, 3}) {
        for (int32_t position : {0, 4, 30}) {
          const int64_t count = 6, depth = 11;
          Rows rows(count, depth, random);
          AtOnePosition(rows, position);
          Array query(type, count * size, random), key(type, count * size, random),
              value(type, count * size, random), y = query;
          Array cache(type, depth * rows.lanes * 2 * size, random);
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
          p.type = type;
          p.query = query.data();
          p.key = key.data();
          p.value = value.data();
          p.cache.data = cache.data();
          p.y = y.data();
          SelfAttentionStepCuda(p, nullptr);
          ExpectClose(y, expected);
          for (size_t i = 0; i < expected_cache.size(); ++i) ASSERT_EQ(cache[i], expected_cache[i]);
        }
      }
    }
  }
}

TEST(CudaKernelsTest, SumAndNormAreThoseOfTheCpu) {
  std::mt19937 random(8);
  for (FloatType type : kTypes) {
    for (int64_t channels : {1, 37, 64, 512, 1024, 1030, 12800}) {
      const int64_t rows = 3;
      Array x(type, rows * channels, random), residual(type, rows * channels, random), y = x;
      Array weight(type, channels, random), bias(type, channels, random);
      std::vector<float> expected(y.floats.size());
      AddNormParams p = {.type = FloatType::kFloat32,
                         .x = x.floats.data(),
                         .residual = residual.floats.data(),
                         .weight = weight.floats.data(),
                         .bias = bias.floats.data(),
                         .y = expected.data(),
                         .rows = rows,
                         .channels = channels};
      AddNormCpu(p);
      p.type = type;
      p.x = x.data();
      p.residual = residual.data();
      p.weight = weight.data();
      p.bias = bias.data();
      p.y = y.data();
      AddNormCuda(p, nullptr);
      ExpectClose(y, expected);
    }
  }
}

// The tables and plans of some beam searches, at random.
struct Beams {
  static constexpr int kRows = 40, kLanes = 44, kReach = 4, kLongest = 24, kBlocks = 2;
  static constexpr int kStride = kPlanWords + kBlocks;

  std::vector<int32_t> plan = std::vector<int32_t>(kRows * kStride);
  std::vector<int32_t> tokens = std::vector<int32_t>(kLanes);
  std::vector<float> sums = std::vector<float>(kLanes);
  std::vector<int32_t> ancestry = std::vector<int32_t>(kLanes * kReach);
  std::vector<int32_t> history = std::vector<int32_t>(2 * kLanes * kLongest);
  std::vector<int32_t> counts = std::vector<int32_t>(kLanes * 2);

  explicit Beams(int vocabulary, std::mt19937& random) {
    std::vector<int32_t> lanes(kLanes);
    std::iota(lanes.begin(), lanes.end(), 0);
    std::shuffle(lanes.begin(), lanes.end(), random);
    for (int r = 0; r < kRows; ++r) at(r).search = -1;
    int row = 0;
    for (int n = 0; row < kRows; ++n) {
      BeamPlan& own = at(n);
      own.beam = std::min<int32_t>(kRows - row, random() % 6 == 0 ? kMostBeam : 1 + random() % 6);
      if (random() % 6 == 0) {  // rows that only fill up
        row += own.beam;
        own.beam = 0;
        continue;
      }
      own.first_row = row;
      own.position = random() % 4 == 0 ? 0 : random() % (kLongest - 2);
      own.forced = random() % 5 == 0 ? random() % vocabulary : -1;
      own.may_end = random() % 3 != 0;
      own.ngram = random() % 2 == 0 ? 0 : 1 + random() % 3;
      own.unknown_penalty = random() % 2 == 0 ? 0.0f : 1.5f;
      own.temperature = random() % 2 == 0 ? 1.0f : 0.6f;
      own.source_tokens = 9;
      std::copy_n(lanes.begin() + row, own.beam, own.lanes);
      for (int i = 0; i < own.beam; ++i) at(row + i).search = n;
      counts[2 * own.lanes[0]] = random() % (own.beam + 1);
      counts[2 * own.lanes[0] + 1] = random() % own.beam;
      row += own.beam;
    }
    std::normal_distribution<float> normal;
    for (float& sum : sums) sum = normal(random);
    for (int32_t& token : tokens) token = random() % vocabulary;
    for (int32_t& token : history) token = random() % std::min(vocabulary, 8);
    for (int32_t& lane : ancestry) lane = random() % kLanes;
  }

  BeamPlan& at(int row) { return *reinterpret_cast<BeamPlan*>(plan.data() + row * kStride); }
  BeamTables tables() {
    return {tokens.data(), sums.data(), ancestry.data(), history.data(),
            counts.data(), kLanes,      kReach,          kLongest};
  }
  bool operator==(const Beams&) const = default;
};

constexpr BeamSpecialTokens kSpecial = {2, 1, 2, 3};

struct StepRoom {
  std::vector<float> found = std::vector<float>(Beams::kRows * kMostFound),
                     also = std::vector<float>(Beams::kRows),
                     normalizers = std::vector<float>(Beams::kRows);
  std::vector<int32_t> found_tokens = std::vector<int32_t>(Beams::kRows * kMostFound, -1);
  std::vector<BeamRecord> record = std::vector<BeamRecord>(Beams::kRows);

  BeamStepParams Params(Beams& beams, FloatType type, void* logits, const int32_t* ancestry,
                        int vocabulary) {
    return {.plan = beams.plan.data(),
            .tables = beams.tables(),
            .special = kSpecial,
            .type = type,
            .logits = logits,
            .ancestry = ancestry,
            .record = record.data(),
            .found = found.data(),
            .found_tokens = found_tokens.data(),
            .also = also.data(),
            .log_normalizers = normalizers.data(),
            .rows = Beams::kRows,
            .plan_stride = Beams::kStride,
            .vocabulary = vocabulary};
  }
};

TEST(CudaKernelsTest, BeamSearchIsThatOfTheCpu) {
  std::mt19937 random(6);
  for (FloatType type : kTypes) {
    for (int vocabulary : {5, 33, 200, 1031}) {
      for (int round = 0; round < 2; ++round) {
        SCOPED_TRACE(testing::Message() << "vocabulary " << vocabulary);
        Beams beams(vocabulary, random), cuda_beams = beams;
        std::vector<int32_t> ancestry(Beams::kRows * Beams::kReach);
        for (int32_t& lane : ancestry) lane = random() % Beams::kLanes;
        Array logits(type, int64_t{Beams::kRows} * vocabulary, random);
        for (int i = 0; type == FloatType::kFloat32 && i < 40; ++i) {  // ties and impossible ones
          logits.floats[random() % logits.floats.size()] = 2;
          logits.floats[random() % logits.floats.size()] = -std::numeric_limits<float>::infinity();
        }
        StepRoom cpu, cuda;
        BeamStepCpu(cpu.Params(beams, FloatType::kFloat32, logits.floats.data(), ancestry.data(),
                               vocabulary));
        Beams before = cuda_beams;
        const BeamStepParams params =
            cuda.Params(cuda_beams, type, logits.data(), ancestry.data(), vocabulary);
        BeamStepCuda(params, nullptr);

        // What was found is the same to the bit, but for the rounding of the normalizer.
        for (int row = 0; row < Beams::kRows; ++row) {
          const int number = before.at(row).search;
          if (number < 0) continue;
          const BeamPlan& plan = before.at(number);
          if (row - plan.first_row >= LiveOf(plan, before.tables())) continue;
          ASSERT_NEAR(cuda.normalizers[row], cpu.normalizers[row], 1e-4) << row;
          ASSERT_EQ(cuda.also[row], cpu.also[row]) << row;
          for (int i = 0; i < 2 * plan.beam && plan.forced < 0; ++i) {
            const int at = row * kMostFound + i;
            const bool none = cpu.found_tokens[at] < 0;
            // Of -infinity the CPU's list holds nothing, and no search takes it.
            if (none && cuda.found_tokens[at] >= 0) {
              ASSERT_EQ(cuda.found[at], -std::numeric_limits<float>::infinity());
              continue;
            }
            ASSERT_EQ(cuda.found_tokens[at], cpu.found_tokens[at]) << row << " " << i;
            if (!none) {
              ASSERT_EQ(cuda.found[at], cpu.found[at]);
            }
          }
        }
        // From there on one thread does what a block does.
        std::vector<BeamRecord> record(Beams::kRows);
        BeamStepParams single = params;
        single.tables = before.tables();
        single.record = record.data();
        BeamScratch scratch;
        for (int n = 0; n < Beams::kRows; ++n) AdvanceSearch(single, n, scratch, SingleThread());
        ASSERT_EQ(
            std::memcmp(record.data(), cuda.record.data(), record.size() * sizeof(BeamRecord)), 0);
        ASSERT_TRUE(before == cuda_beams);
      }
    }
  }
}

TEST(CudaKernelsTest, InputsOfBeamsAreThoseOfTheCpu) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    Beams beams(100, random);
    struct Room {
      std::vector<int64_t> tokens = std::vector<int64_t>(Beams::kRows, -7);
      std::vector<int32_t> positions = std::vector<int32_t>(Beams::kRows, -7),
                           ancestry = std::vector<int32_t>(Beams::kRows * Beams::kReach, -7),
                           blocks = std::vector<int32_t>(Beams::kRows * Beams::kBlocks, -7),
                           lengths = std::vector<int32_t>(Beams::kRows, -7);
      bool operator==(const Room&) const = default;
    } cpu, cuda;
    const auto params = [&](Room& room) {
      return BeamInputsParams{.plan = beams.plan.data(),
                              .tables = beams.tables(),
                              .special = kSpecial,
                              .tokens = room.tokens.data(),
                              .positions = room.positions.data(),
                              .ancestry = room.ancestry.data(),
                              .blocks = room.blocks.data(),
                              .source_lengths = room.lengths.data(),
                              .rows = Beams::kRows,
                              .plan_stride = Beams::kStride,
                              .row_blocks = Beams::kBlocks};
    };
    BeamInputsCpu(params(cpu));
    BeamInputsCuda(params(cuda), nullptr);
    EXPECT_TRUE(cpu == cuda);
  }
}

}  // namespace
}  // namespace linnet::ops
