#include <algorithm>
#include <cmath>
#include <cstring>

#include "model/ops/cpu/gemm.h"
#include "model/ops/cpu/packed_linear.h"
#include "model/ops/cpu/packed_matrix.h"
#include "model/ops/cpu/parallel.h"
#include "model/ops/cpu/vectors.h"
#include "model/ops/params.h"

namespace linnet::ops {
namespace {

constexpr int64_t kPanel = PackedMatrix::kPanel;
// From this many rows on, each thread computes whole rows: the gemm and the operations after it.
// With fewer rows the threads divide the columns of the gemm, so that each reads a part of the
// weights; the operations after it are cheap then. (Two threads, base size, 32 rows: float32 8 %
// faster by columns, int8 the same.)
constexpr int64_t kManyRows = 64;
// Rows that pass through the gemm and the operations after it together: their sums stay in the L2
// cache.
constexpr int64_t kBlockRows = 48;

// Turns the sums of one row, [padded outputs], into its result: activation, residual, norm.
struct FinishRow {
  template <int W>
  static LINNET_INLINE void Activate(Activation activation, int64_t width, float* sums) {
    using V = Vectors<W>;
    switch (activation) {
      case Activation::kNone:
        return;
      case Activation::kRelu:  // keeps NaN
        for (int64_t c = 0; c < width; c += W) {
          const auto v = V::Load(sums + c);
          V::Store(v < 0 ? typename V::Floats{} : v, sums + c);
        }
        return;
      case Activation::kSwish:
        for (int64_t c = 0; c < width; c += W) {
          const auto v = V::Load(sums + c);
          V::Store(v * V::Sigmoid(v), sums + c);
        }
        return;
      case Activation::kGelu:
        for (int64_t c = 0; c < width; ++c) {
          sums[c] *= 0.5f * (1.0f + std::erf(sums[c] * 0.70710678f));
        }
        return;
      case Activation::kGlu:  // the gates start at `width`
        for (int64_t c = 0; c < width; c += W) {
          V::Store(V::Load(sums + c) * V::Sigmoid(V::Load(sums + width + c)), sums + c);
        }
        return;
    }
  }

  template <int W>
  static LINNET_INLINE void Normalize(const LinearParams& p, const float* sums, float* y) {
    const float *weight = p.norm_weight, *bias = p.norm_bias;
    const int64_t width = p.width;
    using V = Vectors<W>;
    const int64_t whole = width / W * W;
    typename V::Floats totals = {}, squares = {};
    for (int64_t c = 0; c < whole; c += W) totals += V::Load(sums + c);
    float total = V::Sum(totals);
    for (int64_t c = whole; c < width; ++c) total += sums[c];
    const float mean = total / width;
    for (int64_t c = 0; c < whole; c += W) {
      const auto d = V::Load(sums + c) - mean;
      squares += d * d;
    }
    float square = V::Sum(squares);
    for (int64_t c = whole; c < width; ++c) square += (sums[c] - mean) * (sums[c] - mean);
    const float scale = 1.0f / std::sqrt(square / width + p.norm_epsilon);
    for (int64_t c = 0; c < whole; c += W) {
      V::Store((V::Load(sums + c) - mean) * scale * V::Load(weight + c) + V::Load(bias + c), y + c);
    }
    for (int64_t c = whole; c < width; ++c) {
      y[c] = (sums[c] - mean) * scale * weight[c] + bias[c];
    }
  }

  template <int W>
  static LINNET_INLINE void Run(const LinearParams& p, int64_t row, float* sums) {
    using V = Vectors<W>;
    Activate<W>(p.activation, p.width, sums);
    if (p.residual) {
      const float* residual = p.residual + row * p.width;
      const int64_t whole = p.width / W * W;
      for (int64_t c = 0; c < whole; c += W) {
        V::Store(V::Load(sums + c) + V::Load(residual + c), sums + c);
      }
      for (int64_t c = whole; c < p.width; ++c) sums[c] += residual[c];
    }
    float* y = p.y + row * p.width;
    if (p.norm_weight) {
      Normalize<W>(p, sums, y);
    } else {
      std::memcpy(y, sums, p.width * sizeof(float));
    }
  }
};

// Each thread computes whole rows.
void ByRows(const LinearParams& p, const PackedLinear& layer) {
  const int64_t stride = layer.weight.padded_outputs(), depth = layer.weight.depth();
  ParallelFor(p.rows, layer.flops_per_row(), [&](int64_t begin, int64_t end) {
    float* sums = Scratch<float, FinishRow, 1>(kBlockRows * stride);
    uint8_t* values = Scratch<uint8_t, FinishRow, 2>(layer.int8 ? kBlockRows * depth : 0);
    float scales[kBlockRows];
    for (int64_t row = begin; row < end; row += kBlockRows) {
      const int64_t last = std::min(end, row + kBlockRows);
      GemmParams gemm = layer.Rows(row, last, values, scales);
      gemm.end = layer.weight.panels();
      gemm.out = sums;
      gemm.out_stride = stride;
      Gemm(gemm);
      for (int64_t i = row; i < last; ++i) RunBest<FinishRow>(p, i, sums + (i - row) * stride);
    }
  });
}

// The threads divide the panels; the operations after the gemm follow row by row. Where there are
// none, and no output is padding, the sums are written to the result directly.
void ByColumns(const LinearParams& p, const PackedLinear& layer) {
  const PackedMatrix& weight = layer.weight;
  const int64_t stride = weight.padded_outputs();
  const bool at_once = p.activation == Activation::kNone && p.residual == nullptr &&
                       p.norm_weight == nullptr && stride == p.width;
  float* sums = at_once ? p.y : Scratch<float, FinishRow, 3>(p.rows * stride);
  uint8_t* values = Scratch<uint8_t, FinishRow, 4>(layer.int8 ? p.rows * weight.depth() : 0);
  float* scales = Scratch<float, FinishRow, 5>(layer.int8 ? p.rows : 0);
  GemmParams gemm = layer.Rows(0, layer.int8 ? 0 : p.rows, values, scales);
  if (layer.int8) {
    gemm.rows = p.rows;
    ParallelFor(p.rows, weight.depth() / 2, [&](int64_t begin, int64_t end) {
      layer.Rows(begin, end, values + begin * weight.depth(), scales + begin);
    });
  }
  ParallelFor(weight.panels(), layer.flops_per_row() / weight.panels() * p.rows,
              [&](int64_t begin, int64_t end) {
                GemmParams part = gemm;
                part.begin = begin;
                part.end = end;
                part.out = sums + begin * kPanel;
                part.out_stride = stride;
                Gemm(part);
              });
  if (at_once) return;
  ParallelFor(p.rows, 4 * stride, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) RunBest<FinishRow>(p, row, sums + row * stride);
  });
}

}  // namespace

void LinearCpu(const LinearParams& params) {
  const PackedLinear layer(*params.weight, params.x, params.bias);
  // The sums of the widest layers, those to a vocabulary, do not fit into the cache by rows.
  constexpr int64_t kMaxSums = 1 << 19;
  if (params.rows >= kManyRows && layer.weight.padded_outputs() * kBlockRows <= kMaxSums) {
    ByRows(params, layer);
  } else {
    ByColumns(params, layer);
  }
}

}  // namespace linnet::ops
