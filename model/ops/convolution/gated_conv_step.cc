#include "model/ops/convolution/gated_conv_step.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include <optional>

#include "model/ops/checks.h"
#include "model/ops/linear.h"

namespace linnet::ops {
namespace {

constexpr char kGatedOp[] = "gated_conv_step";
constexpr char kLayerOp[] = "dynamic_conv_layer_step";

void CheckGated(const at::Tensor& z, const at::Tensor& taps_weight, int64_t heads,
                const at::Tensor& state, const at::Tensor& positions,
                const at::Tensor& backpointers) {
  CheckFloats(kGatedOp, {{"z", z}, {"taps_weight", taps_weight}, {"state", state}});
  CheckIndices(kGatedOp, {"z", z}, {{"positions", positions}, {"backpointers", backpointers}});
  CheckRank(kGatedOp, {"z", z}, 2, "[R, C] or [R, 2 C]");
  CheckRank(kGatedOp, {"taps_weight", taps_weight}, 2, "[H * K, C]");
  CheckRank(kGatedOp, {"state", state}, 3, "[K, S, C]");
  const c10::SymInt channels = state.sym_size(2);
  TORCH_CHECK(z.sym_size(1) == channels || z.sym_size(1) == 2 * channels, kGatedOp, ": z has ",
              z.sym_size(1), " channels, state has ", channels,
              "; z must have as many or twice as many");
  CheckHeads(kGatedOp, channels, heads);
  CheckSize(kGatedOp, {"taps_weight", taps_weight}, 0, "H * K", state.sym_size(0) * heads, "state");
  CheckSize(kGatedOp, {"taps_weight", taps_weight}, 1, "C", channels, "state");
  CheckRing(kGatedOp, {"z", z}, {"state", state}, positions, backpointers);
  CheckOddWidth(kGatedOp, state.sym_size(0));
}

at::Tensor GatedConvStepCpuOp(const at::Tensor& z, const at::Tensor& taps_weight, int64_t heads,
                              at::Tensor& state, const at::Tensor& positions,
                              const at::Tensor& backpointers) {
  return GatedConvStep(z, taps_weight, heads, state, positions, backpointers, GatedConvStepCpu);
}

at::Tensor GatedConvStepMeta(const at::Tensor& z, const at::Tensor& taps_weight, int64_t heads,
                             at::Tensor& state, const at::Tensor& positions,
                             const at::Tensor& backpointers) {
  CheckGated(z, taps_weight, heads, state, positions, backpointers);
  return at::empty_symint({z.sym_size(0), state.sym_size(2)}, z.options());
}

at::Tensor LayerStep(const at::Tensor& x, const at::Tensor& weight,
                     const std::optional<at::Tensor>& bias, c10::string_view activation,
                     const at::Tensor& taps_weight, int64_t heads, at::Tensor& state,
                     const at::Tensor& positions, const at::Tensor& backpointers) {
  static const auto gated = c10::Dispatcher::singleton()
                                .findSchemaOrThrow("linnet::gated_conv_step", "")
                                .typed<decltype(GatedConvStepCpuOp)>();
  using ConvolveStep = at::Tensor(const at::Tensor&, const at::Tensor&, at::Tensor&,
                                  const at::Tensor&, const at::Tensor&);
  static const auto convolve = c10::Dispatcher::singleton()
                                   .findSchemaOrThrow("linnet::dynamic_conv_step", "")
                                   .typed<ConvolveStep>();
  TORCH_CHECK(activation == "none" || activation == "glu", kLayerOp, ": activation is \"",
              activation, "\", it must be none or glu");
  CheckRank(kLayerOp, {"x", x}, 2, "[R, I]");
  CheckRank(kLayerOp, {"state", state}, 3, "[K, S, C]");
  if (x.is_cuda() && x.size(0) <= kFewRows && GatedConvStepFits(state.size(2), state.size(0))) {
    return gated.call(Linear(x, weight, bias), taps_weight, heads, state, positions, backpointers);
  }
  const at::Tensor inputs = LinearWith(x, weight, bias, activation);
  const at::Tensor scores = Linear(inputs, taps_weight, {});
  return convolve.call(inputs, scores.view({x.size(0), heads, state.size(0)}), state, positions,
                       backpointers);
}

}  // namespace

at::Tensor GatedConvStep(const at::Tensor& z, const at::Tensor& taps_weight, int64_t heads,
                         at::Tensor& state, const at::Tensor& positions,
                         const at::Tensor& backpointers, GatedConvStepKernel kernel) {
  CheckGated(z, taps_weight, heads, state, positions, backpointers);
  const int64_t channels = state.size(2), width = state.size(0);
  TORCH_CHECK(!z.is_cuda() || GatedConvStepFits(channels, width), kGatedOp, ": ", channels,
              " channels and ", width,
              " taps do not fit into the shared memory of a block; use "
              "linear and dynamic_conv_step");
  const at::Tensor dense_z = z.contiguous(), dense_weight = taps_weight.contiguous(),
                   dense_positions = positions.contiguous(),
                   dense_backpointers = backpointers.contiguous();
  at::Tensor y = at::empty({z.size(0), channels}, z.options());
  if (y.numel() == 0) return y;
  kernel({.type = FloatTypeOf(z),
          .gated = z.size(1) != channels,
          .z = dense_z.const_data_ptr(),
          .taps_weight = dense_weight.const_data_ptr(),
          .state = UnpackRing(kGatedOp, {"state", state}, dense_positions, dense_backpointers),
          .y = y.mutable_data_ptr(),
          .rows = z.size(0),
          .channels = channels,
          .heads = heads,
          .width = width});
  return y;
}

TORCH_LIBRARY_FRAGMENT(linnet, m) {
  m.def(
      "gated_conv_step(Tensor z, Tensor taps_weight, int heads, Tensor(a!) state, "
      "Tensor positions, Tensor backpointers) -> Tensor",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "dynamic_conv_layer_step(Tensor x, Tensor weight, Tensor? bias, str activation, "
      "Tensor taps_weight, int heads, Tensor(a!) state, Tensor positions, Tensor backpointers) -> "
      "Tensor");
}

TORCH_LIBRARY_IMPL(linnet, CPU, m) { m.impl("gated_conv_step", GatedConvStepCpuOp); }

TORCH_LIBRARY_IMPL(linnet, Meta, m) { m.impl("gated_conv_step", GatedConvStepMeta); }

TORCH_LIBRARY_IMPL(linnet, CompositeImplicitAutograd, m) {
  m.impl("dynamic_conv_layer_step", LayerStep);
}

TORCH_LIBRARY_IMPL(linnet, Autograd, m) {
  m.impl("gated_conv_step", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace linnet::ops
