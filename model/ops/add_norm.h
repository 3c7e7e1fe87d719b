#pragma once

#include <ATen/core/Tensor.h>

#include "model/ops/params.h"

// torch.ops.linnet:
//   add_norm(Tensor x, Tensor residual, Tensor weight, Tensor bias, float epsilon=1e-5) -> Tensor
//
// Residual sum and layer norm at the end of a block, y = layer_norm(x + residual), in one launch
// where torch needs two. The sum is not rounded before the norm.
//
//   y[.., c] = (s[.., c] - mean) / sqrt(variance + epsilon) * weight[c] + bias[c],   s = x +
//   residual, mean and variance over the last dimension
//
//   x, residual   [.., C]   float32, bfloat16 or (CUDA) float16; C >= 1
//   weight, bias  [C]       type of x
//   epsilon                 positive
//   returns       [.., C]   type of x, contiguous; sums in float32
//
// linear (linear.h) ends with it on CUDA. Throws c10::Error if a shape, type or device does not
// fit, and in a backward pass, since it has no gradient.
//
// Source: Ba et al. 2016, Layer Normalization.
namespace linnet::ops {

using AddNormKernel = void (*)(const AddNormParams& params);

// Checks, unpacks and runs; the device libraries register this.
at::Tensor AddNorm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                   const at::Tensor& bias, double epsilon, AddNormKernel kernel);

// Through the dispatcher.
at::Tensor CallAddNorm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                       const at::Tensor& bias, double epsilon);

}  // namespace linnet::ops
