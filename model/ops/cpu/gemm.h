#pragma once

#include <cstdint>

#include "model/ops/cpu/packed_matrix.h"

// Products of rows with packed weights, for the CPU kernels that need one (linear_cpu.cc).
//
// Why not a library: at the few rows of an interactive step those of LibTorch spend most of their
// time on the way to the product, and none promises that a row's result is the same whatever rows
// are with it. On two cores of a Sapphire Rapids without AMX, 512 x 2048, microseconds for 4 and
// 160 rows: int8 here 10 and 220, oneDNN 35 and 247, FBGEMM 24 and 337; float32 here 40 and 808,
// MKL with packed weights 51 and 837, without 82 and 950.
namespace linnet::ops {

// Rows as int8 products read them: round(x / scale) + 128 with a scale per row, its largest value
// over 127, so that a row's numbers depend on itself alone. A row of NaN or infinity gets a scale
// that is none, and so do its products.
//   x: [rows, inputs]  ->  values: [rows, depth] (behind `inputs` 128), scales: [rows]
void QuantizeRows(const float* x, int64_t rows, int64_t inputs, int64_t depth, uint8_t* values,
                  float* scales);

// out[r, n] = sum_k x[r, k] weight[n, k] + bias[n] for whole panels [begin, end).
//
// float32 adds in order of k, with one rounding per product and sum where the processor has FMA;
// int8 sums are exact. So a result's bits depend on its own row and column alone: not on the rows
// beside it, nor on how rows and panels are dealt out to threads.
struct Product {
  const PackedMatrix* weight;
  const float* x = nullptr;           // float32: [rows, inputs]
  const uint8_t* values = nullptr;    // int8: of QuantizeRows
  const float* row_scales = nullptr;  // likewise
  const float* bias = nullptr;        // [padded_outputs] or null
  int64_t rows = 0;
  int64_t begin = 0, end = 0;  // panels
  float* out = nullptr;        // [rows, out_stride], at the first output of panel `begin`
  int64_t out_stride = 0;
};

// On the calling thread.
void Multiply(const Product& product);

// Whether the processor multiplies int8 by the instructions made for it (AVX512-VNNI). Without them
// the results are the same, at about the speed of float32.
bool MultipliesInt8();

}  // namespace linnet::ops
