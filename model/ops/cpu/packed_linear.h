#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/ops/cpu/gemm.h"
#include "model/ops/cpu/packed_matrix.h"

namespace linnet::ops {

// Scratch memory of the calling thread. It is kept, since every step needs the same sizes. Each
// pair of `Owner` and kUse has its own memory.
template <class T, class Owner, int kUse>
T* Scratch(size_t count) {
  thread_local std::vector<T> memory;
  if (memory.size() < count) memory.resize(count);
  return memory.data();
}

// The gemm of a linear layer with packed weights, x weight^T + bias, for a range of rows at a time.
struct PackedLinear {
  const PackedMatrix& weight;
  const float* x;     // [rows, inputs]
  const float* bias;  // [padded_outputs] or null
  bool int8;

  // bias: [outputs] or null. Valid until the thread constructs the next PackedLinear.
  PackedLinear(const PackedMatrix& matrix, const float* rows, const float* outputs_bias)
      : weight(matrix),
        x(rows),
        bias(outputs_bias),
        int8(matrix.type() == PackedMatrix::Type::kInt8) {
    if (bias != nullptr && weight.outputs() < weight.padded_outputs()) {
      float* padded = Scratch<float, PackedLinear, 0>(weight.padded_outputs());
      std::fill(padded, padded + weight.padded_outputs(), 0.0f);
      std::copy(bias, bias + weight.outputs(), padded);
      bias = padded;
    }
  }

  // The cost in float32 multiply-adds; int8 counts a quarter of them.
  int64_t flops_per_row() const {
    return weight.padded_outputs() * weight.depth() / (int8 ? 4 : 1);
  }

  // Gemm parameters of rows [begin, end). int8 quantises them into values [rows, depth] and scales
  // [rows].
  GemmParams Rows(int64_t begin, int64_t end, uint8_t* values, float* scales) const {
    GemmParams gemm;
    gemm.weight = &weight;
    gemm.x = x + begin * weight.inputs();
    gemm.bias = bias;
    gemm.rows = end - begin;
    if (int8) {
      QuantizeRows(gemm.x, gemm.rows, weight.inputs(), weight.depth(), values, scales);
      gemm.values = values;
      gemm.row_scales = scales;
    }
    return gemm;
  }
};

}  // namespace linnet::ops
