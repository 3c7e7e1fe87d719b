#include "model/ops/convolution/depthwise_conv_step.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include "model/ops/checks.h"

namespace linnet::ops {
namespace {

constexpr char kDepthwiseConvStepOp[] = "depthwise_conv_step";

void Check(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& state,
           const at::Tensor& positions, const at::Tensor& backpointers, int64_t dilation) {
  CheckFloats(kDepthwiseConvStepOp, {{"x", x}, {"weight", weight}, {"state", state}});
  CheckIndices(kDepthwiseConvStepOp, {"x", x},
               {{"positions", positions}, {"backpointers", backpointers}});
  CheckRank(kDepthwiseConvStepOp, {"x", x}, 2, "[R, C]");
  CheckRank(kDepthwiseConvStepOp, {"weight", weight}, 2, "[C, K]");
  CheckRank(kDepthwiseConvStepOp, {"state", state}, 3, "[W, S, C]");
  CheckSize(kDepthwiseConvStepOp, {"weight", weight}, 0, "C", x.sym_size(1), "x");
  CheckOddWidth(kDepthwiseConvStepOp, weight.sym_size(1));
  CheckDilation(kDepthwiseConvStepOp, dilation);
  CheckSize(kDepthwiseConvStepOp, {"state", state}, 0, "(K - 1) * dilation + 1",
            (weight.sym_size(1) - 1) * dilation + 1, "weight and dilation");
  CheckSize(kDepthwiseConvStepOp, {"state", state}, 2, "C", x.sym_size(1), "x");
  CheckRing(kDepthwiseConvStepOp, {"x", x}, {"state", state}, positions, backpointers);
}

at::Tensor DepthwiseConvStepCpuOp(const at::Tensor& x, const at::Tensor& weight, at::Tensor& state,
                                  const at::Tensor& positions, const at::Tensor& backpointers,
                                  int64_t dilation) {
  return DepthwiseConvStep(x, weight, state, positions, backpointers, dilation,
                           DepthwiseConvStepCpu);
}

at::Tensor DepthwiseConvStepMeta(const at::Tensor& x, const at::Tensor& weight, at::Tensor& state,
                                 const at::Tensor& positions, const at::Tensor& backpointers,
                                 int64_t dilation) {
  Check(x, weight, state, positions, backpointers, dilation);
  return at::empty_symint(x.sym_sizes(), x.options());
}

}  // namespace

at::Tensor DepthwiseConvStep(const at::Tensor& x, const at::Tensor& weight, at::Tensor& state,
                             const at::Tensor& positions, const at::Tensor& backpointers,
                             int64_t dilation, DepthwiseConvStepKernel kernel) {
  Check(x, weight, state, positions, backpointers, dilation);
  const at::Tensor dense_x = x.contiguous();
  const at::Tensor taps = weight.t().contiguous();
  const at::Tensor dense_positions = positions.contiguous();
  const at::Tensor dense_backpointers = backpointers.contiguous();
  at::Tensor y = at::empty(x.sizes(), x.options());
  if (y.numel() == 0) return y;
  kernel({.type = FloatTypeOf(x),
          .x = dense_x.const_data_ptr(),
          .taps = taps.const_data_ptr(),
          .state = UnpackRing(kDepthwiseConvStepOp, {"state", state}, dense_positions,
                              dense_backpointers),
          .y = y.mutable_data_ptr(),
          .rows = x.size(0),
          .channels = x.size(1),
          .width = weight.size(1),
          .dilation = dilation});
  return y;
}

TORCH_LIBRARY_FRAGMENT(linnet, m) {
  m.def(
      "depthwise_conv_step(Tensor x, Tensor weight, Tensor(a!) state, Tensor positions, "
      "Tensor backpointers, int dilation) -> Tensor",
      {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(linnet, CPU, m) { m.impl("depthwise_conv_step", DepthwiseConvStepCpuOp); }

TORCH_LIBRARY_IMPL(linnet, Meta, m) { m.impl("depthwise_conv_step", DepthwiseConvStepMeta); }

// A backward pass through it is an error instead of a silent zero.
TORCH_LIBRARY_IMPL(linnet, Autograd, m) {
  m.impl("depthwise_conv_step", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace linnet::ops
