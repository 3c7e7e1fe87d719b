#include "model/ops/source_attention.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include "model/ops/checks.h"

namespace linnet::ops {
namespace {

constexpr char kSourceAttentionOp[] = "source_attention";

void Check(const at::Tensor& query, const at::Tensor& encoder_cache, const at::Tensor& blocks,
           const at::Tensor& lengths, int64_t heads) {
  CheckFloats(kSourceAttentionOp, {{"query", query}, {"encoder_cache", encoder_cache}});
  CheckIndices(kSourceAttentionOp, {"query", query}, {{"blocks", blocks}, {"lengths", lengths}});
  CheckRank(kSourceAttentionOp, {"query", query}, 2, "[R, d]");
  CheckRank(kSourceAttentionOp, {"encoder_cache", encoder_cache}, 4, "[N, P, 2, d]");
  CheckRank(kSourceAttentionOp, {"blocks", blocks}, 2, "[R, M]");
  CheckRank(kSourceAttentionOp, {"lengths", lengths}, 1, "[R]");
  CheckSize(kSourceAttentionOp, {"encoder_cache", encoder_cache}, 2, "keys and values", 2,
            "the contract");
  CheckSize(kSourceAttentionOp, {"encoder_cache", encoder_cache}, 3, "d", query.sym_size(1),
            "query");
  CheckSize(kSourceAttentionOp, {"blocks", blocks}, 0, "R", query.sym_size(0), "query");
  CheckSize(kSourceAttentionOp, {"lengths", lengths}, 0, "R", query.sym_size(0), "query");
  CheckHeads(kSourceAttentionOp, query.sym_size(1), heads);
  CheckCudaHeadSize(kSourceAttentionOp, query, heads);
  CheckContiguous(kSourceAttentionOp, {"encoder_cache", encoder_cache},
                  "it is too large to be copied at every step");
}

void CheckHead(int64_t head, int64_t heads) {
  TORCH_CHECK(-1 <= head && head < heads, "source_attention_weights: head is ", head,
              ", must lie between 0 and ", heads - 1, ", or be -1 for the mean of all");
}

// On the CPU, where reading them is free.
void CheckValues(const at::Tensor& lengths, const SourceAttentionParams& p) {
  CheckLengths(kSourceAttentionOp, lengths, p.row_blocks * p.block_tokens,
               "tokens in the row's blocks");
  for (int64_t r = 0; r < p.rows; ++r) {
    const int32_t* blocks = p.blocks + r * p.row_blocks;
    for (int64_t m = 0; m * p.block_tokens < p.lengths[r]; ++m) {
      TORCH_CHECK(0 <= blocks[m] && blocks[m] < p.cache_blocks, kSourceAttentionOp, ": blocks[", r,
                  ", ", m, "] is ", blocks[m], ", must lie between 0 and ", p.cache_blocks - 1,
                  " (blocks of encoder_cache - 1)");
    }
  }
}

// All are contiguous.
SourceAttentionParams MakeParams(const at::Tensor& query, const at::Tensor& encoder_cache,
                                 const at::Tensor& blocks, const at::Tensor& lengths, int64_t heads,
                                 void* y) {
  return {.type = FloatTypeOf(query),
          .query = query.const_data_ptr(),
          .encoder_cache = encoder_cache.const_data_ptr(),
          .blocks = blocks.const_data_ptr<int32_t>(),
          .lengths = lengths.const_data_ptr<int32_t>(),
          .y = y,
          .rows = query.size(0),
          .size = query.size(1),
          .heads = heads,
          .cache_blocks = encoder_cache.size(0),
          .block_tokens = encoder_cache.size(1),
          .row_blocks = blocks.size(1)};
}

at::Tensor SourceAttentionCpuOp(const at::Tensor& query, const at::Tensor& encoder_cache,
                                const at::Tensor& blocks, const at::Tensor& lengths,
                                int64_t heads) {
  return SourceAttention(query, encoder_cache, blocks, lengths, heads, SourceAttentionCpu);
}

at::Tensor SourceAttentionWeightsCpuOp(const at::Tensor& query, const at::Tensor& encoder_cache,
                                       const at::Tensor& blocks, const at::Tensor& lengths,
                                       int64_t heads, int64_t head) {
  Check(query, encoder_cache, blocks, lengths, heads);
  CheckHead(head, heads);
  at::Tensor weights = at::zeros({query.size(0), blocks.size(1) * encoder_cache.size(1)},
                                 query.options().dtype(at::kFloat));
  const at::Tensor dense_query = query.contiguous();
  const at::Tensor dense_blocks = blocks.contiguous();
  const at::Tensor dense_lengths = lengths.contiguous();
  const SourceAttentionParams params =
      MakeParams(dense_query, encoder_cache, dense_blocks, dense_lengths, heads, /*y=*/nullptr);
  CheckValues(dense_lengths, params);
  if (weights.numel() > 0)
    SourceAttentionWeightsCpu(params, head, weights.mutable_data_ptr<float>());
  return weights;
}

at::Tensor SourceAttentionWeightsMeta(const at::Tensor& query, const at::Tensor& encoder_cache,
                                      const at::Tensor& blocks, const at::Tensor& lengths,
                                      int64_t heads, int64_t head) {
  Check(query, encoder_cache, blocks, lengths, heads);
  CheckHead(head, heads);
  return at::empty_symint({query.sym_size(0), blocks.sym_size(1) * encoder_cache.sym_size(1)},
                          query.options().dtype(at::kFloat));
}

at::Tensor SourceAttentionMeta(const at::Tensor& query, const at::Tensor& encoder_cache,
                               const at::Tensor& blocks, const at::Tensor& lengths, int64_t heads) {
  Check(query, encoder_cache, blocks, lengths, heads);
  return at::empty_symint(query.sym_sizes(), query.options());
}

}  // namespace

at::Tensor SourceAttention(const at::Tensor& query, const at::Tensor& encoder_cache,
                           const at::Tensor& blocks, const at::Tensor& lengths, int64_t heads,
                           SourceAttentionKernel kernel) {
  Check(query, encoder_cache, blocks, lengths, heads);
  const at::Tensor dense_query = query.contiguous();
  const at::Tensor dense_blocks = blocks.contiguous();
  const at::Tensor dense_lengths = lengths.contiguous();
  at::Tensor y = at::empty(query.sizes(), query.options());
  const SourceAttentionParams params = MakeParams(dense_query, encoder_cache, dense_blocks,
                                                  dense_lengths, heads, y.mutable_data_ptr());
  if (query.is_cpu()) CheckValues(dense_lengths, params);
  if (y.numel() > 0) kernel(params);
  return y;
}

TORCH_LIBRARY_FRAGMENT(linnet, m) {
  m.def(
      "source_attention(Tensor query, Tensor encoder_cache, Tensor blocks, Tensor lengths, int "
      "heads) "
      "-> Tensor",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "source_attention_weights(Tensor query, Tensor encoder_cache, Tensor blocks, Tensor lengths, "
      "int heads, int head) -> Tensor",
      {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(linnet, CPU, m) {
  m.impl("source_attention", SourceAttentionCpuOp);
  m.impl("source_attention_weights", SourceAttentionWeightsCpuOp);
}

TORCH_LIBRARY_IMPL(linnet, Meta, m) {
  m.impl("source_attention", SourceAttentionMeta);
  m.impl("source_attention_weights", SourceAttentionWeightsMeta);
}

// A backward pass through these is an error instead of a silent zero.
TORCH_LIBRARY_IMPL(linnet, Autograd, m) {
  m.impl("source_attention", torch::autograd::autogradNotImplementedFallback());
  m.impl("source_attention_weights", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace linnet::ops
