#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "model/ops/params.h"

// torch.ops.linnet:
//   dynamic_conv(Tensor x, Tensor weight, Tensor lengths, int padding_left, Tensor? starts=None)
//     -> Tensor
//   light_conv(Tensor x, Tensor weight, Tensor lengths, int padding_left, Tensor? starts=None)
//     -> Tensor
//
// Depthwise convolution over whole sequences. The R = C / H neighbouring channels of a head share
// one filter, the softmax of K scores. dynamic_conv has one filter per position, light_conv one for
// all positions.
//
//   y[b,t,c] = sum_k softmax(weight[b,t,h,:])[k] * x[b, t + k - padding_left, c],   h = c / R
//   light_conv: weight[h,:] in place of weight[b,t,h,:]
//
// The softmax runs over all K taps, also over taps outside the sequence: their share is lost, not
// spread over the others. Models are trained this way. Masking taps before the softmax would give
// other numbers for sequences shorter than K, and steps would no longer equal the whole sequence.
// Positions outside [0, lengths[b]) read as zero; y is zero there as well.
//
//   x             [B, T, C]      float32, bfloat16 or (CUDA) float16
//   weight        [B, T, H, K]   type of x; [H, K] for light_conv; scores before the softmax
//   lengths       [B]            int32, 0 <= lengths[b] <= T
//   starts        [B]            or none: see first_position.h; x outside the sequence reads as
//   zero padding_left  0 .. K-1       K-1 makes it causal, K/2 keeps it centred returns       [B,
//   T, C]      type of x, contiguous; softmax and sums are kept in float32
//
// K must be odd and C % H == 0; B, T and C may be 0. Inputs need not be contiguous. Throws
// c10::Error if a shape, type or device does not fit; lengths out of range throw on the CPU and
// fail a device assertion on CUDA. For inference: a backward pass throws.
//
// Source: Wu et al. 2019, Pay Less Attention with Lightweight and Dynamic Convolutions.
namespace linnet::ops {

using ConvolutionKernel = void (*)(const ConvolutionParams& params);

// Check the arguments, unpack them for `kernel`, and run it. The device libraries register these.
at::Tensor DynamicConv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& lengths,
                       int64_t padding_left, const std::optional<at::Tensor>& starts,
                       ConvolutionKernel kernel);
at::Tensor LightConv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& lengths,
                     int64_t padding_left, const std::optional<at::Tensor>& starts,
                     ConvolutionKernel kernel);

}  // namespace linnet::ops
