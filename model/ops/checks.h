#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <optional>
#include <string>

#include "model/ops/params.h"

// Argument checks that several operators share. They read sizes as SymInt, so that they also work
// on tensors without data and on symbolic shapes (torch.compile, opcheck). All throw c10::Error.
namespace linnet::ops {

struct NamedTensor {
  const char* name;
  const at::Tensor& tensor;
};

// Requires the first tensor to be float32, bfloat16 or (not on the CPU) float16, and all others to
// have its type and device.
void CheckFloats(const char* op, std::initializer_list<NamedTensor> tensors);

// Requires all to be int32 and on the device of `like`.
void CheckIndices(const char* op, NamedTensor like, std::initializer_list<NamedTensor> tensors);

// `shape` names the dimensions in the message: "[B, T, C]".
void CheckRank(const char* op, NamedTensor checked, int64_t rank, const char* shape);

// Requires dimension `dim` of `checked`, called `letter`, to be `size`, that of `source`.
void CheckSize(const char* op, NamedTensor checked, int64_t dim, const char* letter,
               const c10::SymInt& size, const char* source);

// For tensors that are changed in place or are too large to be copied at each step.
void CheckContiguous(const char* op, NamedTensor checked, const char* reason);

// Require the channels to divide evenly into heads, an odd filter width, and a dilation of at least
// 1, so that taps do not coincide.
void CheckHeads(const char* op, const c10::SymInt& channels, const c10::SymInt& heads);
void CheckOddWidth(const char* op, const c10::SymInt& width);
void CheckDilation(const char* op, int64_t dilation);

// Requires the number under the root of a norm to be positive.
void CheckEpsilon(const char* op, double epsilon);

// Requires on CUDA that a head of `query` [R, d] has at most kMaxCudaHeadSize channels.
void CheckCudaHeadSize(const char* op, const at::Tensor& query, int64_t heads);

// Requires 0 <= lengths[i] <= max. For the CPU only: on CUDA reading the values would synchronise
// with the device.
void CheckLengths(const char* op, const at::Tensor& lengths, int64_t max, const char* limit);

// The optional starts [B] of a batch, `rows` [B, T, ...] of the operator (first_position.h): of the
// type, the device and the size of `lengths`.
void CheckStarts(const char* op, const at::Tensor& lengths,
                 const std::optional<at::Tensor>& starts);
// Makes them contiguous, and on the CPU requires every sequence to lie within the batch.
std::optional<at::Tensor> DenseStarts(const char* op, const at::Tensor& rows,
                                      const at::Tensor& dense_lengths,
                                      const std::optional<at::Tensor>& starts, const char* limit);
const int32_t* StartsOrNull(const std::optional<at::Tensor>& dense);

FloatType FloatTypeOf(const at::Tensor& tensor);

// For the step operators: requires `ring` [W, S, ...] to be contiguous, and positions [R] and
// backpointers [R, B >= W] to have the rows of x.
void CheckRing(const char* op, NamedTensor x, NamedTensor ring, const at::Tensor& positions,
               const at::Tensor& backpointers);

// Makes the kernels' view of a ring. On the CPU it also checks the indices of the rows: every slot
// that a row reads exists, and only the rows of a run own the same slot.
Ring UnpackRing(const char* op, NamedTensor ring, const at::Tensor& positions,
                const at::Tensor& backpointers);

}  // namespace linnet::ops
