#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "model/ops/cpu/amx.h"
#include "model/ops/cpu/gemm.h"
#include "model/ops/cpu/gemm_tiles.h"
#include "model/ops/cpu/isa.h"
#include "model/ops/cpu/log_normalizer.h"
#include "model/ops/cpu/packed_matrix.h"
#include "model/ops/params.h"

// The gemm kernels without torch, on arrays of exact size, as in ops_test.cc.
namespace linnet::ops {
namespace {

std::vector<float> Numbers(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(count);
  for (float& number : numbers) number = normal(random);
  return numbers;
}

PackedMatrix::ReadOutputs Read(const std::vector<float>& weight, int64_t inputs) {
  return [&weight, inputs](int64_t first, int64_t /*count*/) { return &weight[first * inputs]; };
}

struct Shape {
  int64_t rows, inputs, outputs;
};
const std::vector<Shape> kShapes = {{1, 3, 1},    {1, 130, 70},  {2, 64, 64},  {5, 33, 200},
                                    {7, 16, 513}, {100, 20, 65}, {65, 36, 128}};

struct Layer {
  explicit Layer(const Shape& s)
      : shape(s),
        x(Numbers(s.rows * s.inputs, 1)),
        weight(Numbers(s.outputs * s.inputs, 2)),
        bias(Numbers(s.outputs, 3)) {}

  double Sum(int64_t row, int64_t output) const {
    double sum = bias[output];
    for (int64_t k = 0; k < shape.inputs; ++k) {
      sum += double{x[row * shape.inputs + k]} * weight[output * shape.inputs + k];
    }
    return sum;
  }
  PackedMatrix Packed(PackedMatrix::Type type) const {
    return {type, shape.outputs, shape.inputs, Read(weight, shape.inputs)};
  }
  // float32: sums of up to 130 products of size 1. int8: 1 % of the sum's size.
  double Tolerance(PackedMatrix::Type type) const {
    return type == PackedMatrix::Type::kFloat32 ? 2e-5 : 0.05 * std::sqrt(shape.inputs);
  }

  Shape shape;
  std::vector<float> x, weight, bias;
};

constexpr PackedMatrix::Type kTypes[] = {PackedMatrix::Type::kFloat32, PackedMatrix::Type::kInt8};

// Rows of a model that was quantised with one multiplier for a whole matrix, as integer /
// multiplier in float32: few of them reach 127.
TEST(PackedMatrixTest, KeepsIntegersOfQuantisedWeights) {
  const int64_t outputs = 130, inputs = 36;
  std::mt19937 random(5);
  for (const float multiplier : {0.37f, 41.7f, 127.0f, 1023.4567f}) {
    std::vector<int> integers(outputs * inputs);
    std::vector<float> weight(integers.size());
    for (int64_t n = 0; n < outputs; ++n) {
      const int highest = n == 0 ? 127 : 1 + static_cast<int>(random() % 127);
      for (int64_t k = 0; k < inputs; ++k) {
        const int value = static_cast<int>(random() % (2 * highest + 1)) - highest;
        // 1 in each row: its integers have no common factor, which would belong to the scale.
        integers[n * inputs + k] = k == n % inputs ? 1 : value;
        weight[n * inputs + k] = integers[n * inputs + k] / multiplier;
      }
    }
    const PackedMatrix packed(PackedMatrix::Type::kInt8, outputs, inputs, Read(weight, inputs));
    for (int64_t n = 0; n < outputs; ++n) {
      ASSERT_FLOAT_EQ(packed.scales()[n] * multiplier, 1.0f);
      const int8_t* column = packed.int8_panel(n / PackedMatrix::kPanel) +
                             n % PackedMatrix::kPanel * PackedMatrix::kGroup;
      for (int64_t k = 0; k < inputs; ++k) {
        const int64_t group = k / PackedMatrix::kGroup * PackedMatrix::kPanel;
        ASSERT_EQ(column[group * PackedMatrix::kGroup + k % PackedMatrix::kGroup],
                  integers[n * inputs + k])
            << n << ", " << k;
      }
    }
  }
}

TEST(PackedMatrixTest, RoundsOtherWeightsToStepsOfTheirMax) {
  const int64_t outputs = 70, inputs = 64;
  const std::vector<float> weight = Numbers(outputs * inputs, 7);
  const PackedMatrix packed(PackedMatrix::Type::kInt8, outputs, inputs, Read(weight, inputs));
  for (int64_t n = 0; n < outputs; ++n) {
    float max = 0;
    for (int64_t k = 0; k < inputs; ++k) max = std::max(max, std::abs(weight[n * inputs + k]));
    EXPECT_EQ(packed.scales()[n], max / 127.0f);
  }
}

TEST(LinearKernel, EqualsPlainLoops) {
  for (const Shape& s : kShapes) {
    const Layer layer(s);
    const auto residual = Numbers(s.rows * s.outputs, 4);
    for (const PackedMatrix::Type type : kTypes) {
      const PackedMatrix packed = layer.Packed(type);
      std::vector<float> y(s.rows * s.outputs, -1.0f);
      LinearCpu({.weight = &packed,
                 .x = layer.x.data(),
                 .bias = layer.bias.data(),
                 .activation = Activation::kRelu,
                 .residual = residual.data(),
                 .norm_weight = nullptr,
                 .norm_bias = nullptr,
                 .norm_epsilon = 1e-5f,
                 .y = y.data(),
                 .rows = s.rows,
                 .width = s.outputs});
      for (int64_t i = 0; i < std::ssize(y); ++i) {
        const double want = std::max(layer.Sum(i / s.outputs, i % s.outputs), 0.0) + residual[i];
        ASSERT_NEAR(y[i], want, layer.Tolerance(type)) << s.rows << " x " << s.outputs;
      }
    }
  }
}

// The products of one gemm, all panels, by a function that takes GemmParams.
template <class Gemm>
std::vector<float> Products(const PackedMatrix& weight, const Layer& layer, const Gemm& gemm) {
  const int64_t rows = layer.shape.rows, depth = weight.depth();
  std::vector<uint8_t> values(rows * depth);
  std::vector<float> scales(rows), bias(weight.padded_outputs());
  std::copy(layer.bias.begin(), layer.bias.end(), bias.begin());
  QuantizeRows(layer.x.data(), rows, layer.shape.inputs, depth, values.data(), scales.data());
  std::vector<float> out(rows * weight.padded_outputs(), -1.0f);
  gemm({.weight = &weight,
        .values = values.data(),
        .row_scales = scales.data(),
        .bias = bias.data(),
        .rows = rows,
        .begin = 0,
        .end = weight.panels(),
        .out = out.data(),
        .out_stride = weight.padded_outputs()});
  return out;
}

// With AMX, Gemm runs the instructions; the emulated tiles test what surrounds them everywhere.
TEST(TileKernelTest, EmulatedTilesHaveTheBitsOfTheGemm) {
  for (const Shape& s : std::vector<Shape>{
           {16, 64, 64}, {17, 64, 70}, {32, 128, 192}, {47, 320, 65}, {112, 512, 130}}) {
    const Layer layer(s);
    const PackedMatrix packed = layer.Packed(PackedMatrix::Type::kInt8);
    const auto want = Products(packed, layer, [](const GemmParams& p) { Gemm(p); });
    int64_t rows = 0;
    const auto got = Products(packed, layer, [&](const GemmParams& p) {
      rows = RowsInTiles(p);
      RunBest<TileKernel<EmulatedTiles>>(p);
    });
    ASSERT_EQ(rows, s.rows / 16 * 16);
    const int64_t computed = rows * packed.padded_outputs();
    EXPECT_TRUE(std::equal(got.begin(), got.begin() + computed, want.begin()))
        << s.rows << " x " << s.inputs << " x " << s.outputs;
    EXPECT_TRUE(std::all_of(got.begin() + computed, got.end(), [](float y) { return y == -1.0f; }));
  }
}

// Fewer rows than a tile, and the rest of the rows, are multiplied without tiles.
TEST(TileKernelTest, RowsHaveTheSameBitsInTilesAndAlone) {
  const Layer layer({53, 192, 130});
  const PackedMatrix packed = layer.Packed(PackedMatrix::Type::kInt8);
  const auto all = Products(packed, layer, [](const GemmParams& p) { Gemm(p); });
  const auto alone = Products(packed, layer, [](const GemmParams& p) {
    for (int64_t row = 0; row < p.rows; ++row) {
      GemmParams one = p;
      one.values += row * p.weight->depth();
      one.row_scales += row;
      one.out += row * p.out_stride;
      one.rows = 1;
      Gemm(one);
    }
  });
  EXPECT_EQ(all, alone);
}

TEST(TileKernelTest, OddDepthsAndFewRowsAreLeftToVectors) {
  const Layer odd({32, 68, 64}), few({15, 64, 64});
  for (const Layer* layer : {&odd, &few}) {
    const PackedMatrix packed = layer->Packed(PackedMatrix::Type::kInt8);
    const GemmParams params = {.weight = &packed, .rows = layer->shape.rows};
    EXPECT_EQ(RowsInTiles(params), 0);
  }
}

TEST(AmxTest, RunsOnlyWhereTheProcessorHasIt) {
  std::ifstream file("/proc/cpuinfo");
  const std::string facts((std::istreambuf_iterator<char>(file)), {});
  if (facts.find("amx_int8") == std::string::npos || HostIsa() != Isa::kAvx512) {
    EXPECT_FALSE(HasAmx());
    GTEST_SKIP() << "no AMX: its instructions are not tested here";
  }
  EXPECT_TRUE(HasAmx()) << "the system refuses AMX, or a product of tiles is wrong";
}

TEST(BestLogitsKernel, EqualsSortOfEachRow) {
  for (const Shape& s : kShapes) {
    const Layer layer(s);
    for (const PackedMatrix::Type type : kTypes) {
      const PackedMatrix packed = layer.Packed(type);
      std::vector<float> all(s.rows * s.outputs);
      LinearCpu({.weight = &packed,
                 .x = layer.x.data(),
                 .bias = layer.bias.data(),
                 .activation = Activation::kNone,
                 .residual = nullptr,
                 .norm_weight = nullptr,
                 .norm_bias = nullptr,
                 .norm_epsilon = 1e-5f,
                 .y = all.data(),
                 .rows = s.rows,
                 .width = s.outputs});
      std::vector<int32_t> counts(s.rows), also(s.rows);
      for (int64_t r = 0; r < s.rows; ++r) {
        counts[r] = static_cast<int32_t>(r % std::min<int64_t>(s.outputs + 1, 20));
        also[r] = static_cast<int32_t>(r * 31 % (s.outputs + 1)) - 1;
      }
      const int64_t width = *std::max_element(counts.begin(), counts.end()) + 1;
      const std::vector<float> temperatures(s.rows, 0.5f);
      std::vector<float> logits(s.rows * width), normalizers(s.rows);
      std::vector<int32_t> found(s.rows * width);
      BestLogitsCpu({.weight = &packed,
                     .given = nullptr,
                     .x = layer.x.data(),
                     .bias = layer.bias.data(),
                     .counts = counts.data(),
                     .also = also.data(),
                     .temperatures = temperatures.data(),
                     .logits = logits.data(),
                     .found = found.data(),
                     .log_normalizers = normalizers.data(),
                     .rows = s.rows,
                     .tokens = s.outputs,
                     .width = width});
      for (int64_t r = 0; r < s.rows; ++r) {
        const float* row = &all[r * s.outputs];
        std::vector<int32_t> order(s.outputs);
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(),
                         [&](int32_t a, int32_t b) { return row[a] > row[b]; });
        EXPECT_EQ(normalizers[r], LogNormalizer(row, s.outputs, 0.5f)) << "row " << r;
        double sum = 0;
        for (int64_t i = 0; i < s.outputs; ++i) sum += std::exp(double{row[i]} / 0.5);
        // 1e-5: float32 keeps 24 bits of sums of size up to 100.
        EXPECT_NEAR(normalizers[r], std::log(sum), 1e-5 * (10 + std::abs(std::log(sum))));
        for (int64_t i = 0; i < width; ++i) {
          const int32_t want = i < counts[r] ? order[i] : i == counts[r] ? also[r] : -1;
          ASSERT_EQ(found[r * width + i], want) << "row " << r << ", place " << i;
          ASSERT_EQ(logits[r * width + i],
                    want < 0 ? -std::numeric_limits<float>::infinity() : row[want]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace linnet::ops
