#pragma once

#include <ATen/core/Tensor.h>

#include "model/ops/params.h"

// torch.ops.linnet:
//   dynamic_conv_step(Tensor x, Tensor weight, Tensor(a!) state, Tensor positions,
//                     Tensor backpointers) -> Tensor
//   light_conv_step(the same) -> Tensor
//
// One step of dynamic_conv or light_conv with padding_left = K-1 (causal), for R rows, each the
// next position of a hypothesis. `state` is the convolution state: the last K inputs of every
// hypothesis, by position modulo K and by decoder slot. After a beam was reordered the inputs of a
// hypothesis are in several slots; `backpointers` holds the slot of each of them:
//
//   state[positions[r] % K, backpointers[r,0], :] = x[r]
//   y[r,c] = sum_{j=0..min(K-1, positions[r])}
//              softmax(weight[r,h,:])[K-1-j] * state[(positions[r] - j) % K, backpointers[r,j], c]
//   h = c / (C / H);  light_conv_step: weight[h,:] in place of weight[r,h,:]
//
// A beam is therefore reordered by rewriting the small backpointers table, which all layers share.
// A slot need not be cleared for a new sequence: positions before its first are never read. The sum
// runs in the same order as in the operator over whole sequences, and gives the same bits on the
// CPU.
//
//   x             [R, C]      float32, bfloat16 or (CUDA) float16
//   weight        [R, H, K]   type of x; [H, K] for light_conv_step; scores before the softmax
//   state         [K, S, C]   type of x, contiguous, changed in place; S slots
//   positions     [R]         int32, steps that the row's hypothesis has taken before this one
//   backpointers  [R, B]      int32, B >= K; [r,j] is the slot of the row's input of j steps ago,
//                             [r,0] its own slot; -1 there marks an idle row: it writes nothing and
//                             its y is zero. Entries j > positions[r] are never used
//   returns       [R, C]      type of x, contiguous; softmax and sums are kept in float32
//
// The caller gives each row its own slot, and all rows of a sequence the same position: then no row
// reads a value that another row writes in the same step. On the CPU neighbouring rows may also be
// a run: successive positions of one hypothesis, all in one slot, whose entries no other row reads.
// backpointers[r,j+1] of a row of the run is then backpointers[r-1,j] of the row before it. The
// results have the bits of as many steps of one row.
//
// K must be odd and C % H == 0; R may be 0. Throws c10::Error if a shape, type or device does not
// fit; indices out of range throw on the CPU and fail a device assertion on CUDA. A backward pass
// throws.
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
