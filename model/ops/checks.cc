#include "model/ops/checks.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <vector>

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

void CheckDilation(const char* op, int64_t dilation) {
  TORCH_CHECK(dilation >= 1, op, ": dilation is ", dilation,
              ", must be at least 1 (taps at neighbouring positions)");
}

void CheckEpsilon(const char* op, double epsilon) {
  TORCH_CHECK(epsilon > 0, op, ": epsilon is ", epsilon, ", must be above 0");
}

void CheckCudaHeadSize(const char* op, const at::Tensor& query, int64_t heads) {
  TORCH_CHECK(!query.is_cuda() || query.sym_size(1) / heads <= kMaxCudaHeadSize, op,
              ": a head has ", query.sym_size(1) / heads, " channels, on cuda it has at most ",
              kMaxCudaHeadSize);
}

void CheckLengths(const char* op, const at::Tensor& lengths, int64_t max, const char* limit) {
  const int32_t* values = lengths.const_data_ptr<int32_t>();
  for (int64_t i = 0; i < lengths.numel(); ++i) {
    TORCH_CHECK(0 <= values[i] && values[i] <= max, op, ": lengths[", i, "] is ", values[i],
                ", must lie between 0 and ", max, " (", limit, ")");
  }
}

void CheckStarts(const char* op, const at::Tensor& lengths,
                 const std::optional<at::Tensor>& starts) {
  if (!starts) return;
  CheckIndices(op, {"lengths", lengths}, {{"starts", *starts}});
  CheckRank(op, {"starts", *starts}, 1, "[B]");
  CheckSize(op, {"starts", *starts}, 0, "B", lengths.sym_size(0), "lengths");
}

std::optional<at::Tensor> DenseStarts(const char* op, const at::Tensor& rows,
                                      const at::Tensor& dense_lengths,
                                      const std::optional<at::Tensor>& starts, const char* limit) {
  if (!starts) {
    if (rows.is_cpu()) CheckLengths(op, dense_lengths, rows.size(1), limit);
    return std::nullopt;
  }
  at::Tensor dense = starts->contiguous();
  if (!rows.is_cpu()) return dense;
  const int64_t batch = rows.size(0), time = rows.size(1);
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t start = dense.const_data_ptr<int32_t>()[b];
    const int64_t length = dense_lengths.const_data_ptr<int32_t>()[b];
    TORCH_CHECK(0 <= start && start <= b * time, op, ": starts[", b, "] is ", start,
                ", must lie between 0 and ", b * time, ", the positions before row ", b);
    TORCH_CHECK(0 <= length && length <= start + (batch - b) * time, op, ": lengths[", b, "] is ",
                length, ", must lie between 0 and ", start + (batch - b) * time,
                ", the positions up to the last row");
  }
  return dense;
}

const int32_t* StartsOrNull(const std::optional<at::Tensor>& dense) {
  return dense ? dense->const_data_ptr<int32_t>() : nullptr;
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

void CheckRing(const char* op, NamedTensor x, NamedTensor ring, const at::Tensor& positions,
               const at::Tensor& backpointers) {
  CheckRank(op, {"positions", positions}, 1, "[R]");
  CheckRank(op, {"backpointers", backpointers}, 2, "[R, B]");
  CheckSize(op, {"positions", positions}, 0, "R", x.tensor.sym_size(0), x.name);
  CheckSize(op, {"backpointers", backpointers}, 0, "R", x.tensor.sym_size(0), x.name);
  TORCH_CHECK(backpointers.sym_size(1) >= ring.tensor.sym_size(0), op, ": backpointers has shape ",
              backpointers.sym_sizes(), ", needs at least ", ring.tensor.sym_size(0),
              " (the positions in ", ring.name, ") slots per row");
  CheckContiguous(op, ring, "it is changed in place");
}

namespace {

void CheckRingIndices(const char* op, const char* name, const Ring& ring, int64_t rows) {
  std::vector<int64_t> owner(ring.slots, -1);
  for (int64_t r = 0; r < rows; ++r) {
    const int32_t* slots = ring.backpointers + r * ring.backpointers_stride;
    if (slots[0] == -1) continue;
    TORCH_CHECK(ring.positions[r] >= 0, op, ": positions[", r, "] is ", ring.positions[r],
                ", must be at least 0");
    const int64_t entries = std::min<int64_t>(ring.depth, ring.positions[r] + int64_t{1});
    for (int64_t j = 0; j < entries; ++j) {
      TORCH_CHECK(0 <= slots[j] && slots[j] < ring.slots, op, ": backpointers[", r, ", ", j,
                  "] is ", slots[j], ", must lie between 0 and ", ring.slots - 1, " (slots of ",
                  name, " - 1)", j == 0 ? ", or be -1 for an idle row" : "");
    }
    const int64_t before = owner[slots[0]];
    owner[slots[0]] = r;
    if (before == -1) continue;
    // The row continues the run of the row before it.
    const bool next = before == r - 1 && ring.positions[r] == ring.positions[r - 1] + 1 &&
                      std::equal(slots + 1, slots + entries, slots - ring.backpointers_stride);
    TORCH_CHECK(next, op, ": rows ", before, " and ", r, " both own slot ", slots[0],
                "; each row needs a slot of its own, unless it is the next position of the row "
                "before it");
  }
}

}  // namespace

Ring UnpackRing(const char* op, NamedTensor ring, const at::Tensor& positions,
                const at::Tensor& backpointers) {
  const at::Tensor& data = ring.tensor;
  int64_t size = 1;
  for (int64_t dim = 2; dim < data.dim(); ++dim) size *= data.size(dim);
  const Ring unpacked = {.data = data.mutable_data_ptr(),
                         .positions = positions.const_data_ptr<int32_t>(),
                         .backpointers = backpointers.const_data_ptr<int32_t>(),
                         .depth = data.size(0),
                         .slots = data.size(1),
                         .size = size,
                         .backpointers_stride = backpointers.size(1)};
  if (data.is_cpu()) CheckRingIndices(op, ring.name, unpacked, positions.size(0));
  return unpacked;
}

}  // namespace linnet::ops
