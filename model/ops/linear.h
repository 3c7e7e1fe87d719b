#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

// torch.ops.linnet:
//   linear(Tensor x, Tensor weight, Tensor? bias, str activation="none", Tensor? residual=None,
//          Tensor? norm_weight=None, Tensor? norm_bias=None, float norm_epsilon=1e-5) -> Tensor
//   linear_norm(Tensor x, Tensor weight, Tensor? bias, Tensor residual, Tensor norm_weight,
//               Tensor norm_bias, float norm_epsilon=1e-5) -> (Tensor sum, Tensor y)
//   linear_in_float32(Tensor x, Tensor weight, Tensor? bias) -> Tensor
//
// A linear layer with the operations that surround it in an encoder or decoder:
//
//   y = activation(x weight^T + bias)
//   y = y + residual                              if given
//   y = layer_norm(y) * norm_weight + norm_bias   if given; over the last dimension, with
//                                                 the biased variance + norm_epsilon
//
// activation: "none", "relu", "swish" (y * sigmoid(y)), "gelu" (with erf), or "glu": the first half
// of the outputs times the sigmoid of the second half.
//
//   x            [..., I]   float32, bfloat16 or (CUDA) float16
//   weight       [O, I]     type of x; or a result of pack_linear (pack_linear.h), on the CPU and
//                           without gradients
//   bias         [O]        type of x
//   residual     [..., N]   type of x; N = O, for glu O / 2
//   norm_weight, norm_bias  [N], type of x; both or none
//   returns      [..., N]   type of x
//
// linear_norm is linear without an activation that also returns its sum before the norm, the
// residual of the next block where norms come before the blocks.
//
// linear_in_float32 is x weight^T + bias with an unpacked weight, x [R, I] and a float32 bias:
// factors have the type of x, sums and result [R, O] are float32. It has no gradients.
//
// With an unpacked weight linear is composed of torch's own operators, on any device, and has
// gradients. Without gradients, CUDA fuses the residual sum with the norm (add_norm.h) and relu
// into the epilogue of the gemm. Throws c10::Error if a shape, type or device does not fit.
//
// Sources: Dauphin et al. 2017, Language Modeling with Gated Convolutional Networks (glu); Ba et
// al. 2016, Layer Normalization.
namespace linnet::ops {

// x weight^T + bias only.
at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight,
                  const std::optional<at::Tensor>& bias);
at::Tensor LinearWith(const at::Tensor& x, const at::Tensor& weight,
                      const std::optional<at::Tensor>& bias, c10::string_view activation);
// x weight^T + bias on a GPU, perhaps with a relu, by the algorithm that was chosen for its shape
// (gemm_choice.h); nothing if there is none. The result has the type of x, or is float32, then like
// the bias. liblinnet_ops_cuda registers it when it is loaded.
using ChosenLinearFunction = std::optional<at::Tensor> (*)(const at::Tensor& x,
                                                           const at::Tensor& weight,
                                                           const std::optional<at::Tensor>& bias,
                                                           bool relu, bool float32_result);
void SetChosenLinear(ChosenLinearFunction function);

at::Tensor LinearInFloat32(const at::Tensor& x, const at::Tensor& weight,
                           const std::optional<at::Tensor>& bias);
// Throws if the arguments of Linear do not fit.
void CheckLinear(const at::Tensor& x, const at::Tensor& weight,
                 const std::optional<at::Tensor>& bias);

}  // namespace linnet::ops
