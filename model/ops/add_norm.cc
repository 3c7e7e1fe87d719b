#include "model/ops/add_norm.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include <utility>

#include "model/ops/checks.h"

namespace linnet::ops {
namespace {

at::Tensor AddNormCpuOp(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                        const at::Tensor& bias, double epsilon) {
  return AddNorm(x, residual, weight, bias, epsilon, AddNormCpu);
}

SumAndNorm AddNormSumCpuOp(const at::Tensor& x, const at::Tensor& residual,
                           const at::Tensor& weight, const at::Tensor& bias, double epsilon) {
  return AddNormSum(x, residual, weight, bias, epsilon, AddNormCpu);
}

void CheckAddNorm(const char* op, const at::Tensor& x, const at::Tensor& residual,
                  const at::Tensor& weight, const at::Tensor& bias, double epsilon) {
  CheckEpsilon(op, epsilon);
  CheckFloats(op, {{"x", x}, {"residual", residual}, {"weight", weight}, {"bias", bias}});
  TORCH_CHECK(x.dim() >= 1 && x.sym_size(-1) >= 1, op, ": x has shape ", x.sym_sizes(),
              ", it must be [.., C] with at least one channel");
  TORCH_CHECK(residual.sym_sizes() == x.sym_sizes(), op, ": residual has shape ",
              residual.sym_sizes(), ", x ", x.sym_sizes(), "; both need one shape");
  for (const NamedTensor& named : {NamedTensor{"weight", weight}, NamedTensor{"bias", bias}}) {
    CheckRank(op, named, 1, "[C]");
    CheckSize(op, named, 0, "C", x.sym_size(-1), "x");
  }
}

at::Tensor AddNormMeta(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                       const at::Tensor& bias, double epsilon) {
  CheckAddNorm("add_norm", x, residual, weight, bias, epsilon);
  return at::empty_symint(x.sym_sizes(), x.options());
}

SumAndNorm AddNormSumMeta(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                          const at::Tensor& bias, double epsilon) {
  CheckAddNorm("add_norm_sum", x, residual, weight, bias, epsilon);
  return {at::empty_symint(x.sym_sizes(), x.options()),
          at::empty_symint(x.sym_sizes(), x.options())};
}

// `sum` has the shape and type of x, or is undefined.
at::Tensor RunAddNorm(const char* op, const at::Tensor& x, const at::Tensor& residual,
                      const at::Tensor& weight, const at::Tensor& bias, double epsilon,
                      const at::Tensor& sum, AddNormKernel kernel) {
  CheckAddNorm(op, x, residual, weight, bias, epsilon);
  const at::Tensor dense_x = x.contiguous(), dense_residual = residual.contiguous(),
                   dense_weight = weight.contiguous(), dense_bias = bias.contiguous();
  at::Tensor y = at::empty(x.sizes(), x.options());
  if (y.numel() == 0) return y;
  kernel({.type = FloatTypeOf(x),
          .x = dense_x.const_data_ptr(),
          .residual = dense_residual.const_data_ptr(),
          .weight = dense_weight.const_data_ptr(),
          .bias = dense_bias.const_data_ptr(),
          .sum = sum.defined() ? sum.mutable_data_ptr() : nullptr,
          .y = y.mutable_data_ptr(),
          .rows = x.numel() / x.size(-1),
          .channels = x.size(-1),
          .epsilon = static_cast<float>(epsilon)});
  return y;
}

}  // namespace

at::Tensor AddNorm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                   const at::Tensor& bias, double epsilon, AddNormKernel kernel) {
  return RunAddNorm("add_norm", x, residual, weight, bias, epsilon, /*sum=*/{}, kernel);
}

SumAndNorm AddNormSum(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                      const at::Tensor& bias, double epsilon, AddNormKernel kernel) {
  at::Tensor sum = at::empty(x.sizes(), x.options());
  at::Tensor y = RunAddNorm("add_norm_sum", x, residual, weight, bias, epsilon, sum, kernel);
  return {std::move(sum), std::move(y)};
}

at::Tensor CallAddNorm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                       const at::Tensor& bias, double epsilon) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("linnet::add_norm", "")
                             .typed<decltype(AddNormCpuOp)>();
  return op.call(x, residual, weight, bias, epsilon);
}

SumAndNorm CallAddNormSum(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                          const at::Tensor& bias, double epsilon) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("linnet::add_norm_sum", "")
                             .typed<decltype(AddNormSumCpuOp)>();
  return op.call(x, residual, weight, bias, epsilon);
}

TORCH_LIBRARY_FRAGMENT(linnet, m) {
  m.def(
      "add_norm(Tensor x, Tensor residual, Tensor weight, Tensor bias, float epsilon=1e-5) -> "
      "Tensor",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "add_norm_sum(Tensor x, Tensor residual, Tensor weight, Tensor bias, float epsilon=1e-5) -> "
      "(Tensor sum, Tensor y)",
      {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(linnet, CPU, m) {
  m.impl("add_norm", AddNormCpuOp);
  m.impl("add_norm_sum", AddNormSumCpuOp);
}

TORCH_LIBRARY_IMPL(linnet, Meta, m) {
  m.impl("add_norm", AddNormMeta);
  m.impl("add_norm_sum", AddNormSumMeta);
}

TORCH_LIBRARY_IMPL(linnet, Autograd, m) {
  m.impl("add_norm", torch::autograd::autogradNotImplementedFallback());
  m.impl("add_norm_sum", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace linnet::ops
