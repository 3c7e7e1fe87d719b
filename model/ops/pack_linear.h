#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "model/ops/params.h"

// torch.ops.linnet:
//   pack_linear(Tensor weight, str type, Tensor? scales=None) -> Tensor
//   quantize_linear(Tensor weight) -> (Tensor values, Tensor scales)
//   take_outputs(Tensor weight, Tensor outputs) -> Tensor
//   unpack_outputs(Tensor weight, Tensor outputs) -> Tensor
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
// Throws c10::Error if a shape, type or value does not fit.
//
// Source, for quantisation by row: Dettmers et al. 2022, LLM.int8(), section 2.
namespace linnet::ops {

// True if the processor has instructions for bfloat16 (AVX512-BF16, AMX-BF16 or AVX-NE-CONVERT) and
// oneDNN uses them; elsewhere pack_linear refuses "bfloat16". With AVX-512 alone oneDNN has a gemm
// as well, but one that emulates the instructions: it converts and computes in float32.
bool HasBfloat16Gemm();

// The contents of a packed weight: one of the two members is set.
struct PackedWeight {
  std::shared_ptr<const PackedMatrix> matrix;  // float32 and int8
  at::Tensor mkldnn;                           // bfloat16
};

// The contents of a weight; null if it is not packed.
const PackedWeight* FindPacked(const at::Tensor& weight);
bool IsPacked(const at::Tensor& weight);
// The matrix in a weight that was packed for float32 or int8; null for any other weight.
const PackedMatrix* FindPackedMatrix(const at::Tensor& weight);

}  // namespace linnet::ops
