#include "model/ops/self_attention_step.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include "model/ops/checks.h"

namespace linnet::ops {
namespace {

constexpr char kSelfAttentionStepOp[] = "self_attention_step";

void Check(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
           const at::Tensor& cache, const at::Tensor& positions, const at::Tensor& backpointers,
           int64_t heads, int64_t neighbour_heads) {
  CheckFloats(kSelfAttentionStepOp,
              {{"query", query}, {"key", key}, {"value", value}, {"cache", cache}});
  CheckIndices(kSelfAttentionStepOp, {"query", query},
               {{"positions", positions}, {"backpointers", backpointers}});
  CheckRank(kSelfAttentionStepOp, {"query", query}, 2, "[R, d]");
  for (const NamedTensor& input : {NamedTensor{"key", key}, NamedTensor{"value", value}}) {
    CheckRank(kSelfAttentionStepOp, input, 2, "[R, d]");
    CheckSize(kSelfAttentionStepOp, input, 0, "R", query.sym_size(0), "query");
    CheckSize(kSelfAttentionStepOp, input, 1, "d", query.sym_size(1), "query");
  }
  CheckRank(kSelfAttentionStepOp, {"cache", cache}, 4, "[W, S, 2, d]");
  TORCH_CHECK(cache.sym_size(0) >= 1, kSelfAttentionStepOp, ": cache has shape ", cache.sym_sizes(),
              ", dimension 0 (W) must be at least 1");
  CheckSize(kSelfAttentionStepOp, {"cache", cache}, 2, "keys and values", 2, "the contract");
  CheckSize(kSelfAttentionStepOp, {"cache", cache}, 3, "d", query.sym_size(1), "query");
  CheckRing(kSelfAttentionStepOp, {"query", query}, {"cache", cache}, positions, backpointers);
  CheckHeads(kSelfAttentionStepOp, query.sym_size(1), heads);
  CheckCudaHeadSize(kSelfAttentionStepOp, query, heads);
  TORCH_CHECK(neighbour_heads >= 1 && neighbour_heads % 2 == 1, kSelfAttentionStepOp,
              ": neighbour_heads is ", neighbour_heads,
              ", must be odd and at least 1 (a head by itself)");
}

at::Tensor SelfAttentionStepCpuOp(const at::Tensor& query, const at::Tensor& key,
                                  const at::Tensor& value, at::Tensor& cache,
                                  const at::Tensor& positions, const at::Tensor& backpointers,
                                  int64_t heads, int64_t neighbour_heads) {
  return SelfAttentionStep(query, key, value, cache, positions, backpointers, heads,
                           neighbour_heads, SelfAttentionStepCpu);
}

at::Tensor SelfAttentionStepMeta(const at::Tensor& query, const at::Tensor& key,
                                 const at::Tensor& value, at::Tensor& cache,
                                 const at::Tensor& positions, const at::Tensor& backpointers,
                                 int64_t heads, int64_t neighbour_heads) {
  Check(query, key, value, cache, positions, backpointers, heads, neighbour_heads);
  return at::empty_symint(query.sym_sizes(), query.options());
}

}  // namespace

at::Tensor SelfAttentionStep(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, at::Tensor& cache,
                             const at::Tensor& positions, const at::Tensor& backpointers,
                             int64_t heads, int64_t neighbour_heads,
                             SelfAttentionStepKernel kernel) {
  Check(query, key, value, cache, positions, backpointers, heads, neighbour_heads);
  const at::Tensor dense_query = query.contiguous();
  const at::Tensor dense_key = key.contiguous();
  const at::Tensor dense_value = value.contiguous();
  const at::Tensor dense_positions = positions.contiguous();
  const at::Tensor dense_backpointers = backpointers.contiguous();
  at::Tensor y = at::empty(query.sizes(), query.options());
  if (y.numel() == 0) return y;
  kernel({.type = FloatTypeOf(query),
          .query = dense_query.const_data_ptr(),
          .key = dense_key.const_data_ptr(),
          .value = dense_value.const_data_ptr(),
          .cache = UnpackRing(kSelfAttentionStepOp, {"cache", cache}, dense_positions,
                              dense_backpointers),
          .y = y.mutable_data_ptr(),
          .rows = query.size(0),
          .size = query.size(1),
          .heads = heads,
          .neighbour_heads = neighbour_heads});
  return y;
}

TORCH_LIBRARY_FRAGMENT(linnet, m) {
  m.def(
      "self_attention_step(Tensor query, Tensor key, Tensor value, Tensor(a!) cache, "
      "Tensor positions, Tensor backpointers, int heads, int neighbour_heads) -> Tensor",
      {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(linnet, CPU, m) { m.impl("self_attention_step", SelfAttentionStepCpuOp); }

TORCH_LIBRARY_IMPL(linnet, Meta, m) { m.impl("self_attention_step", SelfAttentionStepMeta); }

// A backward pass through it is an error instead of a silent zero.
TORCH_LIBRARY_IMPL(linnet, Autograd, m) {
  m.impl("self_attention_step", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace linnet::ops
