#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "model/ops/params.h"

// torch.ops.linnet:
//   depthwise_conv(Tensor x, Tensor weight, Tensor lengths, int padding_left, int dilation,
//                  Tensor? starts=None) -> Tensor
//
// Depthwise convolution over whole sequences: every channel has its own filter. The taps are not
// normalised and lie `dilation` positions apart.
//
//   y[b,t,c] = sum_k weight[c,k] * x[b, t + k * dilation - padding_left, c]
//
// Positions outside [0, lengths[b]) read as zero; y is zero there as well.
//
//   x             [B, T, C]   float32, bfloat16 or (CUDA) float16
//   weight        [C, K]      type of x. The kernels read it as [K, C]: a transposed view of such a
//                             tensor is used as it is, any other layout is copied at each call
//   lengths       [B]         int32, 0 <= lengths[b] <= T
//   padding_left  0 .. (K-1) * dilation; the last makes it causal, half of it keeps it centred
//   dilation      at least 1
//   starts        [B]         or none: see first_position.h; x outside the sequence reads as zero
//   returns       [B, T, C]   type of x, contiguous; sums are kept in float32
//
// K must be odd; B, T and C may be 0. Inputs need not be contiguous. Throws c10::Error if a shape,
// type or device does not fit; lengths out of range throw on the CPU and fail a device assertion on
// CUDA. For inference: a backward pass throws.
//
// Sources: Wu et al. 2019, Pay Less Attention with Lightweight and Dynamic Convolutions, section 2
// (and the ablation that compares it with shared and normalised filters); for dilation van den
// Oord et al. 2016, WaveNet, and Tay et al. 2021, Are Pre-trained Convolutions Better than
// Pre-trained Transformers?
namespace linnet::ops {

using DepthwiseConvKernel = void (*)(const DepthwiseConvParams& params);

// Checks the arguments, unpacks them for `kernel`, and runs it. The device libraries register this.
at::Tensor DepthwiseConv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& lengths,
                         int64_t padding_left, int64_t dilation,
                         const std::optional<at::Tensor>& starts, DepthwiseConvKernel kernel);

}  // namespace linnet::ops
