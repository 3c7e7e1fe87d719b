#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "model/ops/params.h"

// torch.ops.linnet:
//   depthwise_conv_step(Tensor x, Tensor weight, Tensor(a!) window, Tensor positions,
//                       Tensor ancestry, int dilation) -> Tensor
//
// One step of depthwise_conv with padding_left = (K-1) * dilation (causal), for R rows. What
// `window`, `positions` and `ancestry` mean is told in convolution_step.h; here the window holds
// the last W = (K-1) * dilation + 1 inputs, of which the taps read every dilation-th:
//
//   window[positions[r] % W, ancestry[r,0], :] = x[r]
//   y[r,c] = sum_{k, j = (K-1-k) * dilation <= positions[r]}
//              weight[c,k] * window[(positions[r] - j) % W, ancestry[r,j], c]
//
// The sum runs in the same order as in depthwise_conv, and gives the same bits on the CPU.
//
//   x          [R, C]      float32, bfloat16 or (CUDA) float16
//   weight     [C, K]      type of x; best the transposed view of a [K, C] tensor, as there
//   window     [W, L, C]   type of x, contiguous, changed in place; L lanes
//   positions  [R]         int32, steps that the row's hypothesis has taken before this one
//   ancestry   [R, A]      int32, A >= W; [r,j] is the lane of the row's input of j steps ago,
//                          -1 in [r,0] marks an idle row: it writes nothing and its y is zero
//   dilation   at least 1
//   returns    [R, C]      type of x, contiguous; sums are kept in float32
//
// K odd, R may be 0. The caller's duties, and what throws, are as in convolution_step.h.
//
// Source: of the convolution see depthwise_conv.h.
namespace linnet::ops {

using DepthwiseConvStepKernel = void (*)(const DepthwiseConvStepParams& params);

// Checks the arguments, unpacks them for `kernel`, and runs it. The device libraries register this.
at::Tensor DepthwiseConvStep(const at::Tensor& x, const at::Tensor& weight, at::Tensor& state,
                             const at::Tensor& positions, const at::Tensor& backpointers,
                             int64_t dilation, DepthwiseConvStepKernel kernel);

}  // namespace linnet::ops
