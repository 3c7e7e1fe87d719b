#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "model/ops/params.h"

// torch.ops.linnet:
//   depthwise_conv_step(Tensor x, Tensor weight, Tensor(a!) state, Tensor positions,
//                       Tensor backpointers, int dilation) -> Tensor
//
// One step of depthwise_conv with padding_left = (K-1) * dilation (causal), for R rows. `state`,
// `positions` and `backpointers` are as in convolution_step.h, but the state holds the last
// W = (K-1) * dilation + 1 inputs, of which the taps read every dilation-th:
//
//   state[positions[r] % W, backpointers[r,0], :] = x[r]
//   y[r,c] = sum_{k, j = (K-1-k) * dilation <= positions[r]}
//              weight[c,k] * state[(positions[r] - j) % W, backpointers[r,j], c]
//
// The sum runs in the same order as in depthwise_conv, and gives the same bits on the CPU.
//
//   x             [R, C]      float32, bfloat16 or (CUDA) float16
//   weight        [C, K]      type of x; fastest as the transposed view of a [K, C] tensor
//   state         [W, S, C]   type of x, contiguous, changed in place; S slots
//   positions     [R]         int32, steps that the row's hypothesis has taken before this one
//   backpointers  [R, B]      int32, B >= W; [r,j] is the slot of the row's input of j steps ago,
//                             -1 in [r,0] marks an idle row: it writes nothing and its y is zero
//   dilation      at least 1
//   returns       [R, C]      type of x, contiguous; sums are kept in float32
//
// K must be odd; R may be 0. The caller's duties and the errors are those of convolution_step.h.
//
// Source: see depthwise_conv.h.
namespace linnet::ops {

using DepthwiseConvStepKernel = void (*)(const DepthwiseConvStepParams& params);

// Checks the arguments, unpacks them for `kernel`, and runs it. The device libraries register this.
at::Tensor DepthwiseConvStep(const at::Tensor& x, const at::Tensor& weight, at::Tensor& state,
                             const at::Tensor& positions, const at::Tensor& backpointers,
                             int64_t dilation, DepthwiseConvStepKernel kernel);

}  // namespace linnet::ops
