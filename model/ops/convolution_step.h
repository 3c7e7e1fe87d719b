#pragma once

#include <ATen/core/Tensor.h>

#include "model/ops/params.h"

// torch.ops.linnet:
//   dynamic_conv_step(Tensor x, Tensor weight, Tensor(a!) window, Tensor positions,
//                     Tensor ancestry) -> Tensor
//   light_conv_step(the same) -> Tensor
//
// One step of dynamic_conv or light_conv with padding_left = K-1 (causal), for R rows, each the
// next position of some hypothesis. The last K inputs of every hypothesis lie in `window`, by
// position modulo K and by lane (the place of a row in the batch). Where a beam was reordered its
// inputs lie in several lanes; `ancestry` says in which:
//
//   window[positions[r] % K, ancestry[r,0], :] = x[r]
//   y[r,c] = sum_{j=0..min(K-1, positions[r])}
//              softmax(weight[r,h,:])[K-1-j] * window[(positions[r] - j) % K, ancestry[r,j], c]
//   h = c / (C / H);  light_conv_step: weight[h,:] in place of weight[r,h,:]
//
// So a beam is reordered by rewriting the small ancestry, which all layers share, and nothing is
// cleared when a new sequence takes over a lane: positions before its first are never read. The sum
// runs in the same order as in the whole sequence's operator, and gives the same bits on the CPU.
//
//   x          [R, C]      float32, bfloat16 or (CUDA) float16
//   weight     [R, H, K]   type of x; [H, K] for light_conv_step; scores before the softmax
//   window     [K, L, C]   type of x, contiguous, changed in place; L lanes
//   positions  [R]         int32, steps that the row's hypothesis has taken before this one
//   ancestry   [R, A]      int32, A >= K; [r,j] is the lane of the row's input of j steps ago,
//                          [r,0] its own lane; -1 there marks an idle row: it writes nothing and
//                          its y is zero. Entries j > positions[r] are never used
//   returns    [R, C]      type of x, contiguous; softmax and sums are kept in float32
//
// The caller gives each row a lane of its own, and has all rows of one sequence, hence all lanes
// that they refer to, stand at one position: then no row reads what another writes in the same
// step. K odd, C % H == 0, R may be 0. Throws c10::Error if a shape, type or device does not fit;
// indices out of range throw on the CPU and stop a CUDA device by an assertion. Has no gradient,
// and says so.
namespace linnet::ops {

using ConvolutionStepKernel = void (*)(const ConvolutionStepParams& params);

// Check the arguments, unpack them for `kernel`, and run it. The device libraries register these.
at::Tensor DynamicConvStep(const at::Tensor& x, const at::Tensor& weight, at::Tensor& state,
                           const at::Tensor& positions, const at::Tensor& backpointers,
                           ConvolutionStepKernel kernel);
at::Tensor LightConvStep(const at::Tensor& x, const at::Tensor& weight, at::Tensor& state,
                         const at::Tensor& positions, const at::Tensor& backpointers,
                         ConvolutionStepKernel kernel);

}  // namespace linnet::ops
