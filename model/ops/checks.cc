#include "model/ops/checks.h"

#include <c10/util/Exception.h>

namespace linnet::ops {

void CheckFloats(const char* op, std::initializer_list<NamedTensor> tensors) {
  const auto& [name, first] = *tensors.begin();
  const auto type = first.scalar_type();
  const bool half_is_supported = !first.is_cpu();
  TORCH_CHECK(
      type == at::kFloat || type == at::kBFloat16 || (half_is_supported && type == at::kHalf), op,
      ": ", name, " is ", type, " on ", first.device(),
      "; supported are float32 and bfloat16, and float16 on cuda");
  for (const auto& [other, tensor] : tensors) {
    TORCH_CHECK(tensor.scalar_type() == type, op, ": ", other, " is ", tensor.scalar_type(), ", ",
                name, " is ", type, "; both need one type");
    TORCH_CHECK(tensor.device() == first.device(), op, ": ", other, " is on ", tensor.device(),
                ", ", name, " on ", first.device(), "; both need one device");
  }
}

void CheckIndices(const char* op, NamedTensor like, std::initializer_list<NamedTensor> tensors) {
  for (const auto& [name, tensor] : tensors) {
    TORCH_CHECK(tensor.scalar_type() == at::kInt, op, ": ", name, " is ", tensor.scalar_type(),
                ", needs int32");
    TORCH_CHECK(tensor.device() == like.tensor.device(), op, ": ", name, " is on ", tensor.device(),
                ", ", like.name, " on ", like.tensor.device(), "; both need one device");
  }
}

void CheckRank(const char* op, NamedTensor checked, int64_t rank, const char* shape) {
  TORCH_CHECK(checked.tensor.dim() == rank, op, ": ", checked.name, " has shape ",
              checked.tensor.sym_sizes(), ", needs ", rank, " dimensions ", shape);
}

void CheckSize(const char* op, NamedTensor checked, int64_t dim, const char* letter,
               const c10::SymInt& size, const char* source) {
  TORCH_CHECK(checked.tensor.sym_size(dim) == size, op, ": ", checked.name, " has shape ",
              checked.tensor.sym_sizes(), ", dimension ", dim, " (", letter, ") must be ", size,
              " as in ", source);
}

void CheckContiguous(const char* op, NamedTensor checked, const char* reason) {
  TORCH_CHECK(checked.tensor.is_contiguous(), op, ": ", checked.name, " of shape ",
              checked.tensor.sym_sizes(), " and strides ", checked.tensor.sym_strides(),
              " must be contiguous: ", reason);
}

void CheckHeads(const char* op, const c10::SymInt& channels, const c10::SymInt& heads) {
  TORCH_CHECK(heads > 0, op, ": number of heads is ", heads, ", must be at least 1");
  TORCH_CHECK(channels % heads == 0, op, ": ", channels, " channels do not fall into ", heads,
              " heads evenly");
}

void CheckOddWidth(const char* op, const c10::SymInt& width) {
  TORCH_CHECK(width % 2 == 1, op, ": filter width is ", width, ", must be odd");
}

void CheckLengths(const char* op, const at::Tensor& lengths, int64_t most, const char* limit) {
  const int32_t* values = lengths.const_data_ptr<int32_t>();
  for (int64_t i = 0; i < lengths.numel(); ++i) {
    TORCH_CHECK(0 <= values[i] && values[i] <= most, op, ": lengths[", i, "] is ", values[i],
                ", must lie between 0 and ", most, " (", limit, ")");
  }
}

FloatType FloatTypeOf(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return FloatType::kFloat32;
    case at::kBFloat16:
      return FloatType::kBFloat16;
    case at::kHalf:
      return FloatType::kFloat16;
    default:
      TORCH_CHECK(false, "no kernel for ", tensor.scalar_type(),
                  "; supported are float32 and bfloat16, and float16 on cuda");
  }
}

}  // namespace linnet::ops
