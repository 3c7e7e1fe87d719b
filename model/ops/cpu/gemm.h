#pragma once

#include <cstdint>

#include "model/ops/cpu/packed_matrix.h"

// Matrix products of rows with packed weights, for the CPU kernels (linear.cc, best_logits.cc).
//
// The libraries in LibTorch do not fit: at the few rows of an interactive step most of their time
// is overhead, and none of them guarantees batch invariance. On two cores of a Sapphire Rapids
// without AMX, 512 x 2048, microseconds for 4 and 160 rows: int8 here 10 and 220, oneDNN 35 and
// 247, FBGEMM 24 and 337; float32 here 40 and 808, MKL with packed weights 51 and 837, without 82
// and 950.
namespace linnet::ops {

// Quantises rows for the int8 gemm: values = round(x / scale) + 128, with one scale per row, its
// largest magnitude / 127, so that a row's values depend on that row only. A row with NaN or
// infinity gets a NaN scale, and so NaN results.
//   x: [rows, inputs]  ->  values: [rows, depth] (128 after `inputs`), scales: [rows]
void QuantizeRows(const float* x, int64_t rows, int64_t inputs, int64_t depth, uint8_t* values,
                  float* scales);

// out[r, n] = sum_k x[r, k] weight[n, k] + bias[n] for whole panels [begin, end).
//
// float32 adds in order of k, with one rounding per product and sum where the processor has FMA;
// int8 sums are exact. So the bits of a result depend on its own row and column only: not on the
// other rows, nor on how rows and panels are divided among threads.
struct GemmParams {
  const PackedMatrix* weight;
  const float* x = nullptr;           // float32: [rows, inputs]
  const uint8_t* values = nullptr;    // int8: from QuantizeRows
  const float* row_scales = nullptr;  // likewise
  const float* bias = nullptr;        // [padded_outputs] or null
  int64_t rows = 0;
  int64_t begin = 0, end = 0;  // panels
  float* out = nullptr;        // [rows, out_stride], at the first output of panel `begin`
  int64_t out_stride = 0;
};

// Runs on the calling thread.
void Gemm(const GemmParams& params);

// True if the processor has AVX512-VNNI, the int8 dot product instructions. Without them the
// results are the same, at about the speed of float32.
bool HasVnni();

}  // namespace linnet::ops
