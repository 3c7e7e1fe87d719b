#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/ops/cpu/gemm.h"
#include "model/ops/cpu/packed_matrix.h"

namespace linnet::ops {

// Memory that a thread keeps: what a step needs is needed by every step. `Owner` and kUse tell one
// use from another.
template <class T, class Owner, int kUse>
T* Scratch(size_t count) {
  thread_local std::vector<T> memory;
  if (memory.size() < count) memory.resize(count);
  return memory.data();
}

// The product of a layer, x weight^T + bias, for a range of rows at a time.
struct PackedLinear {
  const PackedMatrix& weight;
  const float* x;     // [rows, inputs]
  const float* bias;  // [padded_outputs] or null
  bool int8;

  // bias: [outputs] or null. Valid until the next one is made on this thread.
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

  // In the time that a float32 product takes.
  int64_t flops_per_row() const {
    return weight.padded_outputs() * weight.depth() / (int8 ? 4 : 1);
  }

  // Rows [begin, end) as the product reads them; int8: quantised into values [rows, depth] and
  // scales [rows].
  Product Rows(int64_t begin, int64_t end, uint8_t* values, float* scales) const {
    Product product;
    product.weight = &weight;
    product.x = x + begin * weight.inputs();
    product.bias = bias;
    product.rows = end - begin;
    if (int8) {
      QuantizeRows(product.x, product.rows, weight.inputs(), weight.depth(), values, scales);
      product.values = values;
      product.row_scales = scales;
    }
    return product;
  }
};

}  // namespace linnet::ops
