#include "model/ops/convolution/convolution.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include <optional>

#include "model/ops/checks.h"

namespace linnet::ops {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

void Check(const char* op, bool dynamic, const at::Tensor& x, const at::Tensor& weight,
           const at::Tensor& lengths, int64_t padding_left, const OptionalTensor& starts) {
  CheckFloats(op, {{"x", x}, {"weight", weight}});
  CheckIndices(op, {"x", x}, {{"lengths", lengths}});
  CheckRank(op, {"x", x}, 3, "[B, T, C]");
  CheckRank(op, {"lengths", lengths}, 1, "[B]");
  CheckSize(op, {"lengths", lengths}, 0, "B", x.sym_size(0), "x");
  CheckStarts(op, lengths, starts);
  if (dynamic) {
    CheckRank(op, {"weight", weight}, 4, "[B, T, H, K]");
    CheckSize(op, {"weight", weight}, 0, "B", x.sym_size(0), "x");
    CheckSize(op, {"weight", weight}, 1, "T", x.sym_size(1), "x");
  } else {
    CheckRank(op, {"weight", weight}, 2, "[H, K]");
  }
  CheckHeads(op, x.sym_size(2), weight.sym_size(-2));
  CheckOddWidth(op, weight.sym_size(-1));
  TORCH_CHECK(0 <= padding_left && padding_left < weight.sym_size(-1), op, ": padding_left is ",
              padding_left, ", must lie between 0 and ", weight.sym_size(-1) - 1, " (width - 1)");
}

at::Tensor Run(const char* op, bool dynamic, const at::Tensor& x, const at::Tensor& weight,
               const at::Tensor& lengths, int64_t padding_left, const OptionalTensor& starts,
               ConvolutionKernel kernel) {
  Check(op, dynamic, x, weight, lengths, padding_left, starts);
  const at::Tensor dense_x = x.contiguous();
  const at::Tensor dense_weight = weight.contiguous();
  const at::Tensor dense_lengths = lengths.contiguous();
  const OptionalTensor dense_starts = DenseStarts(op, x, dense_lengths, starts, "T");
  at::Tensor y = at::empty(x.sizes(), x.options());
  if (y.numel() == 0) return y;
  kernel({.type = FloatTypeOf(x),
          .dynamic = dynamic,
          .x = dense_x.const_data_ptr(),
          .weight = dense_weight.const_data_ptr(),
          .lengths = dense_lengths.const_data_ptr<int32_t>(),
          .y = y.mutable_data_ptr(),
          .batch = x.size(0),
          .time = x.size(1),
          .channels = x.size(2),
          .heads = weight.size(-2),
          .width = weight.size(-1),
          .padding_left = padding_left,
          .starts = StartsOrNull(dense_starts)});
  return y;
}

at::Tensor DynamicConvCpu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& lengths,
                          int64_t padding_left, const OptionalTensor& starts) {
  return DynamicConv(x, weight, lengths, padding_left, starts, ConvolutionCpu);
}

at::Tensor LightConvCpu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& lengths,
                        int64_t padding_left, const OptionalTensor& starts) {
  return LightConv(x, weight, lengths, padding_left, starts, ConvolutionCpu);
}

at::Tensor DynamicConvMeta(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& lengths,
                           int64_t padding_left, const OptionalTensor& starts) {
  Check("dynamic_conv", /*dynamic=*/true, x, weight, lengths, padding_left, starts);
  return at::empty_symint(x.sym_sizes(), x.options());
}

at::Tensor LightConvMeta(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& lengths,
                         int64_t padding_left, const OptionalTensor& starts) {
  Check("light_conv", /*dynamic=*/false, x, weight, lengths, padding_left, starts);
  return at::empty_symint(x.sym_sizes(), x.options());
}

}  // namespace

at::Tensor DynamicConv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& lengths,
                       int64_t padding_left, const OptionalTensor& starts,
                       ConvolutionKernel kernel) {
  return Run("dynamic_conv", /*dynamic=*/true, x, weight, lengths, padding_left, starts, kernel);
}

at::Tensor LightConv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& lengths,
                     int64_t padding_left, const OptionalTensor& starts, ConvolutionKernel kernel) {
  return Run("light_conv", /*dynamic=*/false, x, weight, lengths, padding_left, starts, kernel);
}

TORCH_LIBRARY_FRAGMENT(linnet, m) {
  m.def(
      "dynamic_conv(Tensor x, Tensor weight, Tensor lengths, int padding_left, "
      "Tensor? starts=None) -> Tensor",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "light_conv(Tensor x, Tensor weight, Tensor lengths, int padding_left, "
      "Tensor? starts=None) -> Tensor",
      {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(linnet, CPU, m) {
  m.impl("dynamic_conv", DynamicConvCpu);
  m.impl("light_conv", LightConvCpu);
}

TORCH_LIBRARY_IMPL(linnet, Meta, m) {
  m.impl("dynamic_conv", DynamicConvMeta);
  m.impl("light_conv", LightConvMeta);
}

// A backward pass through these is an error instead of a silent zero.
TORCH_LIBRARY_IMPL(linnet, Autograd, m) {
  m.impl("dynamic_conv", torch::autograd::autogradNotImplementedFallback());
  m.impl("light_conv", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace linnet::ops
