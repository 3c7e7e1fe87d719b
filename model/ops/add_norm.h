#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

#include "model/ops/params.h"

// torch.ops.linnet:
//   add_norm(Tensor x, Tensor residual, Tensor weight, Tensor bias, float epsilon=1e-5) -> Tensor
//   add_norm_sum(the same) -> (Tensor sum, Tensor y)
//
// Residual sum and layer norm at the end of a block, y = layer_norm(x + residual), in one launch
// where torch needs two. The sum is not rounded before the norm.
//
//   y[.., c] = (s[.., c] - mean) / sqrt(variance + epsilon) * weight[c] + bias[c],   s = x +
//   residual, mean and variance over the last dimension
//
// add_norm_sum also returns s, rounded to its type: the residual of the next block where norms come
// before the blocks.
//
//   x, residual   [.., C]   float32, bfloat16 or (CUDA) float16; C >= 1
//   weight, bias  [C]       type of x
//   epsilon                 positive
//   returns       [.., C]   type of x, contiguous; sums in float32
//
// linear and linear_norm (linear.h) end with them on CUDA. Throws c10::Error if a shape, type or
// device does not fit, and in a backward pass, since it has no gradient.
//
// Source: Ba et al. 2016, Layer Normalization.
namespace linnet::ops {

using AddNormKernel = void (*)(const AddNormParams& params);

using SumAndNorm = std::tuple<at::Tensor, at::Tensor>;

// Check, unpack and run; the device libraries register these.
at::Tensor AddNorm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                   const at::Tensor& bias, double epsilon, AddNormKernel kernel);
SumAndNorm AddNormSum(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                      const at::Tensor& bias, double epsilon, AddNormKernel kernel);

// Through the dispatcher.
at::Tensor CallAddNorm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                       const at::Tensor& bias, double epsilon);
SumAndNorm CallAddNormSum(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                          const at::Tensor& bias, double epsilon);

}  // namespace linnet::ops
