#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <string>

#include "model/ops/params.h"

// The checks that several operators share. They read sizes as SymInt, so that they hold for tensors
// without data and for symbolic shapes (torch.compile, opcheck) as well. All throw c10::Error.
namespace linnet::ops {

struct NamedTensor {
  const char* name;
  const at::Tensor& tensor;
};

// The first tensor is float32, bfloat16 or (not on the CPU) float16; all have its type and device.
void CheckFloats(const char* op, std::initializer_list<NamedTensor> tensors);

// All are int32 and on the device of `like`.
void CheckIndices(const char* op, NamedTensor like, std::initializer_list<NamedTensor> tensors);

// `shape` names the dimensions, for the message: "[B, T, C]".
void CheckRank(const char* op, NamedTensor checked, int64_t rank, const char* shape);

// Dimension `dim` of `checked`, called `letter`, has `size`, that of `source`.
void CheckSize(const char* op, NamedTensor checked, int64_t dim, const char* letter,
               const c10::SymInt& size, const char* source);

// For what is changed in place, or is too large to be copied at each step.
void CheckContiguous(const char* op, NamedTensor checked, const char* reason);

// Channels fall into heads evenly, filters are of odd width, and their taps do not coincide.
void CheckHeads(const char* op, const c10::SymInt& channels, const c10::SymInt& heads);
void CheckOddWidth(const char* op, const c10::SymInt& width);
void CheckDilation(const char* op, int64_t dilation);

// On CUDA a head of `query` [R, d] has at most kMaxCudaHeadSize channels.
void CheckCudaHeadSize(const char* op, const at::Tensor& query, int64_t heads);

// 0 <= lengths[i] <= most. Only for the CPU: elsewhere reading them would stop the device.
void CheckLengths(const char* op, const at::Tensor& lengths, int64_t max, const char* limit);

FloatType FloatTypeOf(const at::Tensor& tensor);

// What the step operators share: `ring` [W, L, ...] is contiguous, positions [R] and ancestry
// [R, A >= W] have the rows of x.
void CheckRing(const char* op, NamedTensor x, NamedTensor ring, const at::Tensor& positions,
               const at::Tensor& backpointers);

// A ring as kernels see it. On the CPU, where reading them stops nothing, the indices of its rows
// are checked: every lane that a row reads exists, and no two rows own the same.
Ring UnpackRing(const char* op, NamedTensor ring, const at::Tensor& positions,
                const at::Tensor& backpointers);

}  // namespace linnet::ops
