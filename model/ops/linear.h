#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "model/ops/params.h"

// torch.ops.linnet:
//   linear(Tensor x, Tensor weight, Tensor? bias, str activation="none", Tensor? residual=None,
//          Tensor? norm_weight=None, Tensor? norm_bias=None) -> Tensor
//   pack_linear(Tensor weight, str type) -> Tensor
//   take_outputs(Tensor weight, Tensor outputs) -> Tensor
//   linear_in_float32(Tensor x, Tensor weight, Tensor? bias) -> Tensor
//
// A linear layer with what stands around it in an encoder or decoder:
//
//   y = activation(x weight^T + bias)
//   y = y + residual                              if there is one
//   y = layer_norm(y) * norm_weight + norm_bias   if there are such; over the last dimension, with
//                                                 the biased variance + 1e-5
//
// activation: "none", "relu", "swish" (y * sigmoid(y)), "gelu" (with erf), or "glu": the first half
// of the outputs times the sigmoid of the second half.
//
//   x            [..., I]   float32, bfloat16 or (CUDA) float16
//   weight       [O, I]     type of x; or what pack_linear made of it, on the CPU and without
//                           gradients
//   bias         [O]        type of x
//   residual     [..., N]   type of x; N = O, for glu O / 2
//   norm_weight, norm_bias  [N], type of x; both or none
//   returns      [..., N]   type of x
//
// pack_linear lays a float32 weight out for the CPU's products, once, when a model is loaded. The
// result keeps the shape [O, I], has no data that other operators could read, and cannot be saved.
//
//   type "float32"   x is float32; a row's result is the same, bit for bit, whatever rows are with
//                    it and on however many threads
//        "int8"      the same; weights are quantised with a scale per output, rows of x with a
//        scale
//                    per row, sums are exact (packed_matrix.h, product_cpu.h)
//        "bfloat16"  x is bfloat16; oneDNN's product, which multiplies in bfloat16 where the
//                    processor can
//
// take_outputs makes of a weight [O, I] that was packed for float32 or int8 one of these outputs
// alone, [N, I] packed likewise: outputs int32 [N], from 0 to O - 1. Their products are the same,
// bit for bit.
//
// linear_in_float32 is x weight^T + bias with weights that are not packed, x [R, I], and a float32
// bias: factors are of the type of x, sums and result [R, O] are float32. It has no gradients.
//
// With a weight that is not packed all of it is composed of torch's own operators, on any device,
// and has gradients. Where none are asked for, CUDA takes the residual sum with the norm as one
// launch (add_norm.h), and relu into the product's epilogue. Throws c10::Error if a shape, type or
// device does not fit.
//
// Sources: Dauphin et al. 2017, Language Modeling with Gated Convolutional Networks (glu); Ba et
// al. 2016, Layer Normalization; for rows quantised one by one Dettmers et al. 2022, LLM.int8(),
// section 2.
namespace linnet::ops {

bool IsPacked(const at::Tensor& weight);
// What a weight packed for float32 or int8 holds; null for any other.
const PackedMatrix* MatrixOf(const at::Tensor& weight);

// x weight^T + bias alone.
at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight,
                  const std::optional<at::Tensor>& bias);
at::Tensor LinearInFloat32(const at::Tensor& x, const at::Tensor& weight,
                           const std::optional<at::Tensor>& bias);
// Throws what Linear throws.
void CheckLinear(const at::Tensor& x, const at::Tensor& weight,
                 const std::optional<at::Tensor>& bias);

}  // namespace linnet::ops
