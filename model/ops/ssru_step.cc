#include "model/ops/ssru_step.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include "model/ops/checks.h"

namespace linnet::ops {
namespace {

constexpr char kSsruStepOp[] = "ssru_step";

void Check(const at::Tensor& projected, const at::Tensor& state, const at::Tensor& positions,
           const at::Tensor& backpointers) {
  CheckFloats(kSsruStepOp, {{"projected", projected}});
  TORCH_CHECK(state.scalar_type() == at::kFloat && state.device() == projected.device(),
              kSsruStepOp, ": state is ", state.scalar_type(), " on ", state.device(),
              ", needs Float on ", projected.device(), ", the device of projected");
  CheckIndices(kSsruStepOp, {"projected", projected},
               {{"positions", positions}, {"backpointers", backpointers}});
  CheckRank(kSsruStepOp, {"projected", projected}, 2, "[R, 2C]");
  CheckRank(kSsruStepOp, {"state", state}, 3, "[2, S, C]");
  CheckSize(kSsruStepOp, {"state", state}, 0, "steps", 2, "the formula");
  CheckSize(kSsruStepOp, {"projected", projected}, 1, "2C", state.sym_size(2) * 2, "state");
  CheckRing(kSsruStepOp, {"projected", projected}, {"state", state}, positions, backpointers);
}

at::Tensor SsruStepCpuOp(const at::Tensor& projected, at::Tensor& state,
                         const at::Tensor& positions, const at::Tensor& backpointers) {
  return SsruStep(projected, state, positions, backpointers, SsruStepCpu);
}

at::Tensor SsruStepMeta(const at::Tensor& projected, at::Tensor& state, const at::Tensor& positions,
                        const at::Tensor& backpointers) {
  Check(projected, state, positions, backpointers);
  return at::empty_symint({projected.sym_size(0), state.sym_size(2)}, projected.options());
}

}  // namespace

at::Tensor SsruStep(const at::Tensor& projected, at::Tensor& state, const at::Tensor& positions,
                    const at::Tensor& backpointers, SsruStepKernel kernel) {
  Check(projected, state, positions, backpointers);
  const at::Tensor dense_projected = projected.contiguous();
  const at::Tensor dense_positions = positions.contiguous();
  const at::Tensor dense_backpointers = backpointers.contiguous();
  at::Tensor y = at::empty({projected.size(0), state.size(2)}, projected.options());
  if (y.numel() == 0) return y;
  kernel({.type = FloatTypeOf(projected),
          .projected = dense_projected.const_data_ptr(),
          .state = UnpackRing(kSsruStepOp, {"state", state}, dense_positions, dense_backpointers),
          .y = y.mutable_data_ptr(),
          .rows = y.size(0),
          .channels = y.size(1)});
  return y;
}

TORCH_LIBRARY_FRAGMENT(linnet, m) {
  m.def(
      "ssru_step(Tensor projected, Tensor(a!) state, Tensor positions, Tensor backpointers) -> "
      "Tensor",
      {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(linnet, CPU, m) { m.impl("ssru_step", SsruStepCpuOp); }

TORCH_LIBRARY_IMPL(linnet, Meta, m) { m.impl("ssru_step", SsruStepMeta); }

// A backward pass through it is an error instead of a silent zero.
TORCH_LIBRARY_IMPL(linnet, Autograd, m) {
  m.impl("ssru_step", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace linnet::ops
