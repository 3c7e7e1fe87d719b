#include "model/ops/convolution/convolution_step.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include "model/ops/checks.h"

namespace linnet::ops {
namespace {

void Check(const char* op, bool dynamic, const at::Tensor& x, const at::Tensor& weight,
           const at::Tensor& state, const at::Tensor& positions, const at::Tensor& backpointers) {
  CheckFloats(op, {{"x", x}, {"weight", weight}, {"state", state}});
  CheckIndices(op, {"x", x}, {{"positions", positions}, {"backpointers", backpointers}});
  CheckRank(op, {"x", x}, 2, "[R, C]");
  CheckRank(op, {"weight", weight}, dynamic ? 3 : 2, dynamic ? "[R, H, K]" : "[H, K]");
  CheckRank(op, {"state", state}, 3, "[K, S, C]");
  if (dynamic) CheckSize(op, {"weight", weight}, 0, "R", x.sym_size(0), "x");
  CheckSize(op, {"state", state}, 0, "K", weight.sym_size(-1), "weight");
  CheckSize(op, {"state", state}, 2, "C", x.sym_size(1), "x");
  CheckRing(op, {"x", x}, {"state", state}, positions, backpointers);
  CheckHeads(op, x.sym_size(1), weight.sym_size(-2));
  CheckOddWidth(op, weight.sym_size(-1));
}

at::Tensor Run(const char* op, bool dynamic, const at::Tensor& x, const at::Tensor& weight,
               at::Tensor& state, const at::Tensor& positions, const at::Tensor& backpointers,
               ConvolutionStepKernel kernel) {
  Check(op, dynamic, x, weight, state, positions, backpointers);
  const at::Tensor dense_x = x.contiguous();
  const at::Tensor dense_weight = weight.contiguous();
  const at::Tensor dense_positions = positions.contiguous();
  const at::Tensor dense_backpointers = backpointers.contiguous();
  at::Tensor y = at::empty(x.sizes(), x.options());
  if (y.numel() == 0) return y;
  kernel({.type = FloatTypeOf(x),
          .dynamic = dynamic,
          .x = dense_x.const_data_ptr(),
          .weight = dense_weight.const_data_ptr(),
          .state = UnpackRing(op, {"state", state}, dense_positions, dense_backpointers),
          .y = y.mutable_data_ptr(),
          .rows = x.size(0),
          .channels = x.size(1),
          .heads = weight.size(-2),
          .width = weight.size(-1)});
  return y;
}

at::Tensor DynamicConvStepCpu(const at::Tensor& x, const at::Tensor& weight, at::Tensor& state,
                              const at::Tensor& positions, const at::Tensor& backpointers) {
  return DynamicConvStep(x, weight, state, positions, backpointers, ConvolutionStepCpu);
}

at::Tensor LightConvStepCpu(const at::Tensor& x, const at::Tensor& weight, at::Tensor& state,
                            const at::Tensor& positions, const at::Tensor& backpointers) {
  return LightConvStep(x, weight, state, positions, backpointers, ConvolutionStepCpu);
}

at::Tensor DynamicConvStepMeta(const at::Tensor& x, const at::Tensor& weight, at::Tensor& state,
                               const at::Tensor& positions, const at::Tensor& backpointers) {
  Check("dynamic_conv_step", /*dynamic=*/true, x, weight, state, positions, backpointers);
  return at::empty_symint(x.sym_sizes(), x.options());
}

at::Tensor LightConvStepMeta(const at::Tensor& x, const at::Tensor& weight, at::Tensor& state,
                             const at::Tensor& positions, const at::Tensor& backpointers) {
  Check("light_conv_step", /*dynamic=*/false, x, weight, state, positions, backpointers);
  return at::empty_symint(x.sym_sizes(), x.options());
}

}  // namespace

at::Tensor DynamicConvStep(const at::Tensor& x, const at::Tensor& weight, at::Tensor& state,
                           const at::Tensor& positions, const at::Tensor& backpointers,
                           ConvolutionStepKernel kernel) {
  return Run("dynamic_conv_step", /*dynamic=*/true, x, weight, state, positions, backpointers,
             kernel);
}

at::Tensor LightConvStep(const at::Tensor& x, const at::Tensor& weight, at::Tensor& state,
                         const at::Tensor& positions, const at::Tensor& backpointers,
                         ConvolutionStepKernel kernel) {
  return Run("light_conv_step", /*dynamic=*/false, x, weight, state, positions, backpointers,
             kernel);
}

TORCH_LIBRARY_FRAGMENT(linnet, m) {
  m.def(
      "dynamic_conv_step(Tensor x, Tensor weight, Tensor(a!) state, Tensor positions, "
      "Tensor backpointers) -> Tensor",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "light_conv_step(Tensor x, Tensor weight, Tensor(a!) state, Tensor positions, "
      "Tensor backpointers) -> Tensor",
      {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(linnet, CPU, m) {
  m.impl("dynamic_conv_step", DynamicConvStepCpu);
  m.impl("light_conv_step", LightConvStepCpu);
}

TORCH_LIBRARY_IMPL(linnet, Meta, m) {
  m.impl("dynamic_conv_step", DynamicConvStepMeta);
  m.impl("light_conv_step", LightConvStepMeta);
}

// A backward pass through these is an error instead of a silent zero.
TORCH_LIBRARY_IMPL(linnet, Autograd, m) {
  m.impl("dynamic_conv_step", torch::autograd::autogradNotImplementedFallback());
  m.impl("light_conv_step", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace linnet::ops
