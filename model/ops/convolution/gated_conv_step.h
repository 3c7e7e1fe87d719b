#pragma once

#include <ATen/core/Tensor.h>

#include "model/ops/params.h"

// torch.ops.linnet:
//   gated_conv_step(Tensor z, Tensor taps_weight, int heads, Tensor(a!) state, Tensor positions,
//                   Tensor backpointers) -> Tensor
//   dynamic_conv_layer_step(Tensor x, Tensor weight, Tensor? bias, str activation,
//                           Tensor taps_weight, int heads, Tensor(a!) state, Tensor positions,
//                           Tensor backpointers) -> Tensor
//
// gated_conv_step is one step of a dynamic convolution (convolution_step.h) with the operations
// before it: the gate, and the projection that gives the taps. The inputs x of the convolution are
// z, or if z is twice as wide as the state, glu(z): the first half times the sigmoid of the second.
//
//   y = dynamic_conv_step(x, x taps_weight^T, state, positions, backpointers)
//
//   z            [R, C] or [R, 2 C]  float32, bfloat16 or (CUDA) float16
//   taps_weight  [H * K, C]          type of z; row h * K + k gives the score of tap k of head h
//   state, positions, backpointers   as in convolution_step.h
//   returns      [R, C]              type of z; sums in float32; x is rounded to its type first
//
// On CUDA each row and head is a block, which computes the gate of the whole row again: one launch
// instead of three, for steps of few rows. It needs C * 4 + K * 12 bytes of shared memory, at most
// 48 KiB.
//
// dynamic_conv_layer_step is gated_conv_step with z = x weight^T + bias (linear.h); activation is
// "none" or "glu". It chooses the one launch on CUDA for at most kFewRows rows and otherwise is
// composed of linear and dynamic_conv_step, so weights may be packed. No gradients.
//
// Throw c10::Error as convolution_step.h.
//
// Source: Wu et al. 2019, Pay Less Attention with Lightweight and Dynamic Convolutions, figure 2.
namespace linnet::ops {

// One block per row and head: 8 rows of 16 heads are the 132 processors of an H200 once.
constexpr int64_t kFewRows = 8;

using GatedConvStepKernel = void (*)(const GatedConvStepParams& params);

// Checks, unpacks and runs; the device libraries register this.
at::Tensor GatedConvStep(const at::Tensor& z, const at::Tensor& taps_weight, int64_t heads,
                         at::Tensor& state, const at::Tensor& positions,
                         const at::Tensor& backpointers, GatedConvStepKernel kernel);

}  // namespace linnet::ops
