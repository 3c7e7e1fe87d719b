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

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "model/ops/checks.h"
#include "model/ops/cpu/parallel.h"

namespace linnet::ops {
namespace {

constexpr char kEmbedOp[] = "embed_tokens";
constexpr char kAddOp[] = "add_positions";

// `rows` has the type and the width of the result.
void CheckAdded(const char* op, NamedTensor rows, const EmbeddedPositions& added) {
  const c10::SymInt width = rows.tensor.sym_size(-1);
  if (added.table) {
    CheckFloats(op, {rows, {"position_table", *added.table}});
    CheckRank(op, {"position_table", *added.table}, 2, "[P, d]");
    CheckSize(op, {"position_table", *added.table}, 1, "d", width, rows.name);
  } else if (added.sinusoid_steps > 0) {
    TORCH_CHECK(width % 2 == 0, op, ": ", rows.name, " has ", width,
                " channels, sinusoids need an even number");
  }
}

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
  CheckAdded(kEmbedOp, {"table", table}, added);
}

void CheckAdd(const at::Tensor& embedded, const at::Tensor& positions,
              const EmbeddedPositions& added) {
  TORCH_CHECK(embedded.dim() >= 2, kAddOp, ": embedded has ", embedded.dim(),
              " dimensions, it must be [..., R, d]");
  CheckFloats(kAddOp, {{"embedded", embedded}});
  CheckIndices(kAddOp, {"embedded", embedded}, {{"positions", positions}});
  CheckRank(kAddOp, {"positions", positions}, 1, "[R]");
  CheckSize(kAddOp, {"positions", positions}, 0, "R", embedded.sym_size(-2), "embedded");
  CheckAdded(kAddOp, {"embedded", embedded}, added);
}

float LogFrequencyStep(double steps) { return static_cast<float>(-std::log(10000.0) / steps); }

// Row i is that of position `first` + i, as torch computes it, in vectors.
struct Sinusoids {
  int64_t first;
  at::Tensor rows;  // float32 [positions, channels]
};

Sinusoids ComputeSinusoids(int64_t first, int64_t last, int64_t channels,
                           float log_frequency_step) {
  const auto floats = at::TensorOptions(at::kFloat);
  const at::Tensor frequencies = at::exp(at::arange(channels / 2, floats) * log_frequency_step);
  const at::Tensor angles = at::arange(first, last + 1, floats).unsqueeze(1) * frequencies;
  return {first, at::cat({at::sin(angles), at::cos(angles)}, 1)};
}

// Those of positions first .. last, and perhaps others. They are kept for each width, up to kMax
// positions: computing them for one row at a time took a sixth of the step of a student with two
// layers.
Sinusoids FindSinusoids(int64_t first, int64_t last, int64_t channels, float log_frequency_step) {
  constexpr int64_t kMin = 64, kMax = 4096;
  if (last >= kMax) return ComputeSinusoids(first, last, channels, log_frequency_step);
  static std::mutex mutex;
  static auto& kept = *new std::map<std::pair<int64_t, float>, Sinusoids>;
  const std::lock_guard lock(mutex);
  Sinusoids& found = kept[{channels, log_frequency_step}];
  if (!found.rows.defined() || found.rows.size(0) <= last) {
    const uint64_t count = std::bit_ceil(static_cast<uint64_t>(std::max(last + 1, kMin)));
    found = ComputeSinusoids(0, count - 1, channels, log_frequency_step);
  }
  return found;
}

// y = scale * x + added.
template <class T, class Added>
void ScaleAndAdd(const T* x, float scale, const Added* added, int64_t channels, T* y) {
  for (int64_t c = 0; c < channels; ++c) {
    const float scaled = static_cast<float>(x[c]) * scale;
    y[c] = static_cast<T>(added == nullptr ? scaled : scaled + static_cast<float>(added[c]));
  }
}

template <class T>
void AddRows(const at::Tensor& embedded, const at::Tensor& positions,
             const EmbeddedPositions& added, at::Tensor& y) {
  const int64_t channels = embedded.size(-1), rows = embedded.numel() / channels;
  const int64_t distinct = positions.size(0);
  const int32_t* given = positions.const_data_ptr<int32_t>();
  const T* x = embedded.const_data_ptr<T>();
  T* out = y.mutable_data_ptr<T>();
  const auto add = [&](const auto& row_of) {
    ParallelFor(rows, channels, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        ScaleAndAdd(x + row * channels, static_cast<float>(added.scale),
                    row_of(given[row % distinct] + added.first), channels, out + row * channels);
      }
    });
  };
  if (added.table) {
    const T* table = added.table->const_data_ptr<T>();
    add([&](int64_t position) { return table + position * channels; });
  } else if (added.sinusoid_steps <= 0) {
    add([](int64_t) -> const T* { return nullptr; });
  } else {
    const auto [first, last] = std::minmax_element(given, given + distinct);
    const Sinusoids sinusoids = FindSinusoids(*first + added.first, *last + added.first, channels,
                                              LogFrequencyStep(added.sinusoid_steps));
    const float* from = sinusoids.rows.const_data_ptr<float>();
    add([&](int64_t position) { return from + (position - sinusoids.first) * channels; });
  }
}

at::Tensor AddPositions(const at::Tensor& embedded, const at::Tensor& positions,
                        const EmbeddedPositions& added) {
  CheckAdd(embedded, positions, added);
  const at::Tensor x = embedded.contiguous(), dense_positions = positions.contiguous();
  at::Tensor y = at::empty(x.sizes(), x.options());
  if (y.numel() == 0) return y;
  const int64_t limit = added.table ? added.table->size(0) : std::numeric_limits<int32_t>::max();
  for (int64_t i = 0; i < dense_positions.size(0); ++i) {
    const int64_t position = dense_positions.const_data_ptr<int32_t>()[i] + added.first;
    TORCH_CHECK(0 <= position && position < limit, kAddOp, ": positions[", i,
                "] with the first is ", position, ", must lie between 0 and ", limit - 1);
  }
  const std::optional<at::Tensor> table =
      added.table ? std::optional(added.table->contiguous()) : std::nullopt;
  const EmbeddedPositions dense = {table, added.scale, added.first, added.sinusoid_steps};
  if (x.scalar_type() == at::kFloat) {
    AddRows<float>(x, dense_positions, dense, y);
  } else {  // the operator's checks allow no third type on the CPU
    AddRows<at::BFloat16>(x, dense_positions, dense, y);
  }
  return y;
}

at::Tensor AddPositionsCpuOp(const at::Tensor& embedded, const at::Tensor& positions,
                             const std::optional<at::Tensor>& position_table, double scale,
                             int64_t first_position, double sinusoid_steps) {
  return AddPositions(embedded, positions, {position_table, scale, first_position, sinusoid_steps});
}

at::Tensor AddPositionsMeta(const at::Tensor& embedded, const at::Tensor& positions,
                            const std::optional<at::Tensor>& position_table, double scale,
                            int64_t first_position, double sinusoid_steps) {
  CheckAdd(embedded, positions, {position_table, scale, first_position, sinusoid_steps});
  return at::empty_symint(embedded.sym_sizes(), embedded.options());
}

at::Tensor EmbedTokensCpuOp(const at::Tensor& tokens, const at::Tensor& positions,
                            const at::Tensor& table,
                            const std::optional<at::Tensor>& position_table, double scale,
                            int64_t first_position, double sinusoid_steps) {
  const EmbeddedPositions added = {position_table, scale, first_position, sinusoid_steps};
  CheckEmbed(tokens, positions, table, added);
  return AddPositions(at::embedding(table, tokens), positions, added);
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
  m.def(
      "add_positions(Tensor embedded, Tensor positions, Tensor? position_table, float scale, "
      "int first_position, float sinusoid_steps) -> Tensor",
      {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(linnet, CPU, m) {
  m.impl("embed_tokens", EmbedTokensCpuOp);
  m.impl("add_positions", AddPositionsCpuOp);
}

TORCH_LIBRARY_IMPL(linnet, Meta, m) {
  m.impl("embed_tokens", EmbedTokensMeta);
  m.impl("add_positions", AddPositionsMeta);
}

TORCH_LIBRARY_IMPL(linnet, Autograd, m) {
  m.impl("embed_tokens", torch::autograd::autogradNotImplementedFallback());
  m.impl("add_positions", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace linnet::ops
