#include "model/ops/convolution/depthwise_conv.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include <optional>

#include "model/ops/checks.h"

namespace linnet::ops {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

constexpr char kDepthwiseConvOp[] = "depthwise_conv";

void Check(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& lengths,
           int64_t padding_left, int64_t dilation, const OptionalTensor& starts) {
  CheckFloats(kDepthwiseConvOp, {{"x", x}, {"weight", weight}});
  CheckIndices(kDepthwiseConvOp, {"x", x}, {{"lengths", lengths}});
  CheckRank(kDepthwiseConvOp, {"x", x}, 3, "[B, T, C]");
  CheckRank(kDepthwiseConvOp, {"weight", weight}, 2, "[C, K]");
  CheckRank(kDepthwiseConvOp, {"lengths", lengths}, 1, "[B]");
  CheckSize(kDepthwiseConvOp, {"weight", weight}, 0, "C", x.sym_size(2), "x");
  CheckSize(kDepthwiseConvOp, {"lengths", lengths}, 0, "B", x.sym_size(0), "x");
  CheckStarts(kDepthwiseConvOp, lengths, starts);
  CheckOddWidth(kDepthwiseConvOp, weight.sym_size(1));
  CheckDilation(kDepthwiseConvOp, dilation);
  const c10::SymInt max = (weight.sym_size(1) - 1) * dilation;
  TORCH_CHECK(0 <= padding_left && padding_left <= max, kDepthwiseConvOp, ": padding_left is ",
              padding_left, ", must lie between 0 and ", max, " ((width - 1) * dilation)");
}

at::Tensor DepthwiseConvCpuOp(const at::Tensor& x, const at::Tensor& weight,
                              const at::Tensor& lengths, int64_t padding_left, int64_t dilation,
                              const OptionalTensor& starts) {
  return DepthwiseConv(x, weight, lengths, padding_left, dilation, starts, DepthwiseConvCpu);
}

at::Tensor DepthwiseConvMeta(const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& lengths, int64_t padding_left, int64_t dilation,
                             const OptionalTensor& starts) {
  Check(x, weight, lengths, padding_left, dilation, starts);
  return at::empty_symint(x.sym_sizes(), x.options());
}

}  // namespace

at::Tensor DepthwiseConv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& lengths,
                         int64_t padding_left, int64_t dilation, const OptionalTensor& starts,
                         DepthwiseConvKernel kernel) {
  Check(x, weight, lengths, padding_left, dilation, starts);
  const at::Tensor dense_x = x.contiguous();
  const at::Tensor taps = weight.t().contiguous();
  const at::Tensor dense_lengths = lengths.contiguous();
  const OptionalTensor dense_starts = DenseStarts(kDepthwiseConvOp, x, dense_lengths, starts, "T");
  at::Tensor y = at::empty(x.sizes(), x.options());
  if (y.numel() == 0) return y;
  kernel({.type = FloatTypeOf(x),
          .x = dense_x.const_data_ptr(),
          .taps = taps.const_data_ptr(),
          .lengths = dense_lengths.const_data_ptr<int32_t>(),
          .y = y.mutable_data_ptr(),
          .batch = x.size(0),
          .time = x.size(1),
          .channels = x.size(2),
          .width = weight.size(1),
          .padding_left = padding_left,
          .dilation = dilation,
          .starts = StartsOrNull(dense_starts)});
  return y;
}

TORCH_LIBRARY_FRAGMENT(linnet, m) {
  m.def(
      "depthwise_conv(Tensor x, Tensor weight, Tensor lengths, int padding_left, int dilation, "
      "Tensor? starts=None) -> Tensor",
      {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(linnet, CPU, m) { m.impl("depthwise_conv", DepthwiseConvCpuOp); }

TORCH_LIBRARY_IMPL(linnet, Meta, m) { m.impl("depthwise_conv", DepthwiseConvMeta); }

// A backward pass through it is an error instead of a silent zero.
TORCH_LIBRARY_IMPL(linnet, Autograd, m) {
  m.impl("depthwise_conv", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace linnet::ops
