#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "model/ops/params.h"

// torch.ops.linnet:
//   linear(Tensor x, Tensor weight, Tensor? bias, str activation="none", Tensor? residual=None,
//          Tensor? norm_weight=None, Tensor? norm_bias=None, float norm_epsilon=1e-5) -> Tensor
//   linear_norm(Tensor x, Tensor weight, Tensor? bias, Tensor residual, Tensor norm_weight,
//               Tensor norm_bias, float norm_epsilon=1e-5) -> (Tensor sum, Tensor y)
//   pack_linear(Tensor weight, str type, Tensor? scales=None) -> Tensor
//   quantize_linear(Tensor weight) -> (Tensor values, Tensor scales)
//   take_outputs(Tensor weight, Tensor outputs) -> Tensor
//   unpack_outputs(Tensor weight, Tensor outputs) -> Tensor
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
//   weight       [O, I]     type of x; or a result of pack_linear, on the CPU and without
//                           gradients
//   bias         [O]        type of x
//   residual     [..., N]   type of x; N = O, for glu O / 2
//   norm_weight, norm_bias  [N], type of x; both or none
//   returns      [..., N]   type of x
//
// linear_norm is linear without an activation that also returns its sum before the norm, the
// residual of the next block where norms come before the blocks.
//
// pack_linear converts a weight to the layout of the CPU's gemm, once, when a model is loaded. The
// result keeps the shape [O, I], has no data that other operators could read, and cannot be saved.
// The weight is float32, bfloat16 or float16, or int8 with scales, float32 [O]: values and scales
// of quantize_linear. A few outputs at a time are converted to the type below, and of a weight that
// is mapped from a file they are not resident any more afterwards.
//
//   type "float32"   x is float32; a row's result is batch invariant: the same bits with any other
//                    rows and any number of threads
//        "int8"      as "float32"; weights are rounded as quantize_linear does, x has a scale per
//                    row, and sums are exact (cpu/packed_matrix.h, cpu/gemm.h)
//        "bfloat16"  x is bfloat16; oneDNN's gemm, on processors with instructions for bfloat16
//                    (HasBfloat16Gemm)
//
// quantize_linear rounds a weight [O, I], finite, to integers with a scale per output: values int8
// [O, I] from -127 to 127 and scales float32 [O], weight ~ scales * values. An output whose weights
// are multiples of a step, at most 127 times, keeps them as they are. In int8 the pair gives the
// same bits as the weight.
//
// take_outputs selects outputs of a weight [O, I] that was packed for float32 or int8 and returns
// them packed likewise, [N, I]: outputs int32 [N], from 0 to O - 1. Their results are the same
// bits.
//
// unpack_outputs returns the weights of outputs as float32 [..., I]: outputs int64 [...]. An
// embedding that is also the output table needs no second copy of it. For int8 they are rounded.
//
// linear_in_float32 is x weight^T + bias with an unpacked weight, x [R, I] and a float32 bias:
// factors have the type of x, sums and result [R, O] are float32. It has no gradients.
//
// With an unpacked weight linear is composed of torch's own operators, on any device, and has
// gradients. Without gradients, CUDA fuses the residual sum with the norm (add_norm.h) and relu
// into the epilogue of the gemm. Throws c10::Error if a shape, type or device does not fit.
//
// Sources: Dauphin et al. 2017, Language Modeling with Gated Convolutional Networks (glu); Ba et
// al. 2016, Layer Normalization; for quantisation by row Dettmers et al. 2022, LLM.int8(),
// section 2.
namespace linnet::ops {

// True if the processor has instructions for bfloat16 (AVX512-BF16, AMX-BF16 or AVX-NE-CONVERT) and
// oneDNN uses them; elsewhere pack_linear refuses "bfloat16". With AVX-512 alone oneDNN has a gemm
// as well, but one that emulates the instructions: it converts and computes in float32.
bool HasBfloat16Gemm();

bool IsPacked(const at::Tensor& weight);
// The matrix in a weight that was packed for float32 or int8; null for any other weight.
const PackedMatrix* FindPackedMatrix(const at::Tensor& weight);

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
