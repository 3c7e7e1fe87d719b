#include "model/ops/add_norm.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include "model/ops/checks.h"

namespace linnet::ops {
namespace {

constexpr char kAddNormOp[] = "add_norm";

at::Tensor AddNormCpuOp(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                        const at::Tensor& bias, double epsilon) {
  return AddNorm(x, residual, weight, bias, epsilon, AddNormCpu);
}

}  // namespace

at::Tensor AddNorm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                   const at::Tensor& bias, double epsilon, AddNormKernel kernel) {
  CheckFloats(kAddNormOp, {{"x", x}, {"residual", residual}, {"weight", weight}, {"bias", bias}});
  TORCH_CHECK(x.dim() >= 1 && x.size(-1) >= 1, kAddNormOp, ": x has shape ", x.sizes(),
              ", it must be [.., C] with at least one channel");
  TORCH_CHECK(residual.sizes() == x.sizes(), kAddNormOp, ": residual has shape ", residual.sizes(),
              ", x ", x.sizes(), "; both need one shape");
  CheckEpsilon(kAddNormOp, epsilon);
  for (const NamedTensor& named : {NamedTensor{"weight", weight}, NamedTensor{"bias", bias}}) {
    CheckRank(kAddNormOp, named, 1, "[C]");
    CheckSize(kAddNormOp, named, 0, "C", x.size(-1), "x");
  }
  const at::Tensor dense_x = x.contiguous(), dense_residual = residual.contiguous(),
                   dense_weight = weight.contiguous(), dense_bias = bias.contiguous();
  at::Tensor y = at::empty(x.sizes(), x.options());
  if (y.numel() == 0) return y;
  kernel({.type = FloatTypeOf(x),
          .x = dense_x.const_data_ptr(),
          .residual = dense_residual.const_data_ptr(),
          .weight = dense_weight.const_data_ptr(),
          .bias = dense_bias.const_data_ptr(),
          .y = y.mutable_data_ptr(),
          .rows = x.numel() / x.size(-1),
          .channels = x.size(-1),
          .epsilon = static_cast<float>(epsilon)});
  return y;
}

at::Tensor CallAddNorm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                       const at::Tensor& bias, double epsilon) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("linnet::add_norm", "")
                             .typed<decltype(AddNormCpuOp)>();
  return op.call(x, residual, weight, bias, epsilon);
}

TORCH_LIBRARY_FRAGMENT(linnet, m) {
  m.def(
      "add_norm(Tensor x, Tensor residual, Tensor weight, Tensor bias, float epsilon=1e-5) -> "
      "Tensor");
}

TORCH_LIBRARY_IMPL(linnet, CPU, m) { m.impl("add_norm", AddNormCpuOp); }

TORCH_LIBRARY_IMPL(linnet, Autograd, m) {
  m.impl("add_norm", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace linnet::ops
