#include "model/ops/self_attention.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include <optional>

#include "model/ops/checks.h"

namespace linnet::ops {
namespace {

constexpr char kSelfAttentionOp[] = "self_attention";

using OptionalTensor = std::optional<at::Tensor>;

void Check(const at::Tensor& query_key_value, const at::Tensor& lengths, int64_t heads,
           const OptionalTensor& starts) {
  CheckRank(kSelfAttentionOp, {"query_key_value", query_key_value}, 3, "[B, T, 3 d]");
  CheckFloats(kSelfAttentionOp, {{"query_key_value", query_key_value}});
  CheckIndices(kSelfAttentionOp, {"query_key_value", query_key_value}, {{"lengths", lengths}});
  CheckRank(kSelfAttentionOp, {"lengths", lengths}, 1, "[B]");
  CheckSize(kSelfAttentionOp, {"lengths", lengths}, 0, "B", query_key_value.sym_size(0),
            "query_key_value");
  TORCH_CHECK(query_key_value.sym_size(2) % 3 == 0, kSelfAttentionOp, ": query_key_value has ",
              query_key_value.sym_size(2), " channels, must have three times as many as a value");
  const c10::SymInt size = query_key_value.sym_size(2) / 3;
  CheckHeads(kSelfAttentionOp, size, heads);
  CheckStarts(kSelfAttentionOp, lengths, starts);
  TORCH_CHECK(!query_key_value.is_cuda() || size / heads <= kMaxCudaHeadSize, kSelfAttentionOp,
              ": a head has ", size / heads, " channels, on cuda it has at most ",
              kMaxCudaHeadSize);
}

at::Tensor SelfAttentionCpuOp(const at::Tensor& query_key_value, const at::Tensor& lengths,
                              int64_t heads, const OptionalTensor& starts) {
  return SelfAttention(query_key_value, lengths, heads, starts, SelfAttentionCpu);
}

at::Tensor SelfAttentionMeta(const at::Tensor& query_key_value, const at::Tensor& lengths,
                             int64_t heads, const OptionalTensor& starts) {
  Check(query_key_value, lengths, heads, starts);
  return at::empty_symint(
      {query_key_value.sym_size(0), query_key_value.sym_size(1), query_key_value.sym_size(2) / 3},
      query_key_value.options());
}

}  // namespace

at::Tensor SelfAttention(const at::Tensor& query_key_value, const at::Tensor& lengths,
                         int64_t heads, const OptionalTensor& starts, SelfAttentionKernel kernel) {
  Check(query_key_value, lengths, heads, starts);
  const at::Tensor dense = query_key_value.contiguous(), dense_lengths = lengths.contiguous();
  const OptionalTensor dense_starts =
      DenseStarts(kSelfAttentionOp, dense, dense_lengths, starts, "positions");
  const int64_t batch = dense.size(0), time = dense.size(1), size = dense.size(2) / 3;
  at::Tensor y = at::empty({batch, time, size}, dense.options());
  if (y.numel() == 0) return y;
  kernel({.type = FloatTypeOf(dense),
          .query_key_value = dense.const_data_ptr(),
          .lengths = dense_lengths.const_data_ptr<int32_t>(),
          .y = y.mutable_data_ptr(),
          .batch = batch,
          .time = time,
          .size = size,
          .heads = heads,
          .starts = StartsOrNull(dense_starts)});
  return y;
}

TORCH_LIBRARY_FRAGMENT(linnet, m) {
  m.def(
      "self_attention(Tensor query_key_value, Tensor lengths, int heads, Tensor? starts=None) "
      "-> Tensor",
      {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(linnet, CPU, m) { m.impl("self_attention", SelfAttentionCpuOp); }

TORCH_LIBRARY_IMPL(linnet, Meta, m) { m.impl("self_attention", SelfAttentionMeta); }

// A backward pass through it is an error instead of a silent zero.
TORCH_LIBRARY_IMPL(linnet, Autograd, m) {
  m.impl("self_attention", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace linnet::ops
