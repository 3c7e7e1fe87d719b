#include "model/ops/embed.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/sin.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include <cmath>

#include "model/ops/checks.h"

namespace linnet::ops {
namespace {

constexpr char kEmbedOp[] = "embed_tokens";

void CheckEmbed(const at::Tensor& tokens, const at::Tensor& positions, const at::Tensor& table,
                const EmbeddedPositions& added) {
  CheckRank(kEmbedOp, {"tokens", tokens}, 1, "[R]");
  CheckRank(kEmbedOp, {"positions", positions}, 1, "[R]");
  CheckRank(kEmbedOp, {"table", table}, 2, "[V, d]");
  TORCH_CHECK(tokens.scalar_type() == at::kLong, kEmbedOp, ": tokens are ", tokens.scalar_type(),
              ", they must be int64");
  TORCH_CHECK(tokens.device() == table.device(), kEmbedOp, ": tokens are on ", tokens.device(),
              ", table is on ", table.device(), "; both need one device");
  CheckIndices(kEmbedOp, {"table", table}, {{"positions", positions}});
  CheckSize(kEmbedOp, {"positions", positions}, 0, "R", tokens.sym_size(0), "tokens");
  if (added.table) {
    CheckFloats(kEmbedOp, {{"table", table}, {"position_table", *added.table}});
    CheckRank(kEmbedOp, {"position_table", *added.table}, 2, "[P, d]");
    CheckSize(kEmbedOp, {"position_table", *added.table}, 1, "d", table.sym_size(1), "table");
  } else if (added.sinusoid_steps > 0) {
    TORCH_CHECK(table.sym_size(1) % 2 == 0, kEmbedOp, ": table has ", table.sym_size(1),
                " channels, sinusoids need an even number");
  }
}

float LogFrequencyStep(double steps) { return static_cast<float>(-std::log(10000.0) / steps); }

at::Tensor EmbedTokensCpuOp(const at::Tensor& tokens, const at::Tensor& positions,
                            const at::Tensor& table,
                            const std::optional<at::Tensor>& position_table, double scale,
                            int64_t first_position, double sinusoid_steps) {
  CheckEmbed(tokens, positions, table, {position_table, scale, first_position, sinusoid_steps});
  at::Tensor x = at::embedding(table, tokens).to(at::kFloat) * scale;
  const at::Tensor from = positions + first_position;
  if (position_table) {
    x = x + at::embedding(*position_table, from);
  } else if (sinusoid_steps > 0) {
    const at::Tensor frequencies =
        at::exp(at::arange(table.size(1) / 2, x.options()) * LogFrequencyStep(sinusoid_steps));
    const at::Tensor angles = from.to(at::kFloat).unsqueeze(-1) * frequencies;
    x = x + at::cat({at::sin(angles), at::cos(angles)}, -1);
  }
  return x.to(table.scalar_type());
}

at::Tensor EmbedTokensMeta(const at::Tensor& tokens, const at::Tensor& positions,
                           const at::Tensor& table, const std::optional<at::Tensor>& position_table,
                           double scale, int64_t first_position, double sinusoid_steps) {
  CheckEmbed(tokens, positions, table, {position_table, scale, first_position, sinusoid_steps});
  return at::empty_symint({tokens.sym_size(0), table.sym_size(1)}, table.options());
}

}  // namespace

at::Tensor EmbedTokens(const at::Tensor& tokens, const at::Tensor& positions,
                       const at::Tensor& table, const EmbeddedPositions& added,
                       EmbedKernel kernel) {
  CheckEmbed(tokens, positions, table, added);
  const at::Tensor dense_tokens = tokens.contiguous(), dense_positions = positions.contiguous(),
                   dense_table = table.contiguous();
  const at::Tensor position_table = added.table ? added.table->contiguous() : at::Tensor();
  at::Tensor y = at::empty({tokens.size(0), table.size(1)}, table.options());
  if (y.numel() == 0) return y;
  kernel({.type = FloatTypeOf(table),
          .tokens = dense_tokens.const_data_ptr<int64_t>(),
          .positions = dense_positions.const_data_ptr<int32_t>(),
          .table = dense_table.const_data_ptr(),
          .position_table = added.table ? position_table.const_data_ptr() : nullptr,
          .y = y.mutable_data_ptr(),
          .rows = tokens.size(0),
          .channels = table.size(1),
          .vocabulary = table.size(0),
          .max_positions = added.table ? position_table.size(0) : 0,
          .first_position = added.first,
          .scale = static_cast<float>(added.scale),
          .sinusoids = added.sinusoid_steps > 0,
          .log_frequency_step =
              added.sinusoid_steps > 0 ? LogFrequencyStep(added.sinusoid_steps) : 0.0f});
  return y;
}

TORCH_LIBRARY_FRAGMENT(linnet, m) {
  m.def(
      "embed_tokens(Tensor tokens, Tensor positions, Tensor table, Tensor? position_table, "
      "float scale, int first_position, float sinusoid_steps) -> Tensor",
      {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(linnet, CPU, m) { m.impl("embed_tokens", EmbedTokensCpuOp); }

TORCH_LIBRARY_IMPL(linnet, Meta, m) { m.impl("embed_tokens", EmbedTokensMeta); }

TORCH_LIBRARY_IMPL(linnet, Autograd, m) {
  m.impl("embed_tokens", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace linnet::ops
