#include "model/ops/search/best_logits.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "model/ops/checks.h"
#include "model/ops/linear.h"
#include "model/ops/pack_linear.h"
#include "model/ops/params.h"

namespace linnet::ops {
namespace {

constexpr char kBestLogitsOp[] = "best_logits";

void Check(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& counts,
           const at::Tensor& also, const at::Tensor& temperatures) {
  CheckFloats(kBestLogitsOp, {{"x", x}});
  CheckIndices(kBestLogitsOp, {"x", x}, {{"counts", counts}, {"also", also}});
  CheckFloats(kBestLogitsOp, {{"temperatures", temperatures}});
  TORCH_CHECK(temperatures.scalar_type() == at::kFloat, kBestLogitsOp, ": temperatures is ",
              temperatures.scalar_type(), ", it must be float32");
  CheckRank(kBestLogitsOp, {"x", x}, 2, "[R, I]");
  CheckRank(kBestLogitsOp, {"weight", weight}, 2, "[V, I]");
  for (const auto& [name, tensor] : {NamedTensor{"counts", counts}, NamedTensor{"also", also},
                                     NamedTensor{"temperatures", temperatures}}) {
    CheckRank(kBestLogitsOp, {name, tensor}, 1, "[R]");
    CheckSize(kBestLogitsOp, {name, tensor}, 0, "R", x.sym_size(0), "x");
  }
}

// Checks the values of contiguous tensors; returns the largest count.
int64_t CheckCounts(const at::Tensor& counts, const at::Tensor& also,
                    const at::Tensor& temperatures, int64_t tokens) {
  int64_t max = 0;
  for (int64_t r = 0; r < counts.size(0); ++r) {
    const int64_t count = counts.const_data_ptr<int32_t>()[r];
    const int64_t token = also.const_data_ptr<int32_t>()[r];
    const float temperature = temperatures.const_data_ptr<float>()[r];
    TORCH_CHECK(0 <= count && count <= tokens, kBestLogitsOp, ": counts[", r, "] is ", count,
                ", it must be between 0 and ", tokens, ", the tokens of weight");
    TORCH_CHECK(-1 <= token && token < tokens, kBestLogitsOp, ": also[", r, "] is ", token,
                ", it must be below ", tokens, ", the tokens of weight, or -1");
    TORCH_CHECK(temperature > 0, kBestLogitsOp, ": temperatures[", r, "] is ", temperature,
                ", it must be above 0");
    max = std::max(max, count);
  }
  return max;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> BestLogits(
    const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
    const at::Tensor& counts, const at::Tensor& also, const at::Tensor& temperatures) {
  Check(x, weight, counts, also, temperatures);
  const at::Tensor dense_counts = counts.contiguous(), dense_also = also.contiguous(),
                   dense_temperatures = temperatures.contiguous();
  const int64_t rows = x.size(0), tokens = weight.size(0);
  const int64_t width = CheckCounts(dense_counts, dense_also, dense_temperatures, tokens) + 1;
  const auto floats = x.options().dtype(at::kFloat);
  at::Tensor logits = at::empty({rows, width}, floats);
  at::Tensor found = at::empty({rows, width}, x.options().dtype(at::kInt));
  at::Tensor log_normalizers = at::empty({rows}, floats);

  const PackedMatrix* matrix = FindPackedMatrix(weight);
  at::Tensor dense_x, dense_bias, given;
  if (matrix != nullptr) {
    CheckLinear(x, weight, bias);
    dense_x = x.contiguous();
    if (bias) dense_bias = bias->contiguous();
  } else {
    given = Linear(x, weight, bias).to(at::kFloat).contiguous();
  }
  const auto data = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
  };
  if (rows > 0) {
    BestLogitsCpu({.weight = matrix,
                   .given = data(given),
                   .x = data(dense_x),
                   .bias = data(dense_bias),
                   .counts = dense_counts.const_data_ptr<int32_t>(),
                   .also = dense_also.const_data_ptr<int32_t>(),
                   .temperatures = data(dense_temperatures),
                   .logits = logits.mutable_data_ptr<float>(),
                   .found = found.mutable_data_ptr<int32_t>(),
                   .log_normalizers = log_normalizers.mutable_data_ptr<float>(),
                   .rows = rows,
                   .tokens = tokens,
                   .width = width});
  }
  return {logits, found, log_normalizers};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(linnet, m) {
  m.def(
      "best_logits(Tensor x, Tensor weight, Tensor? bias, Tensor counts, Tensor also, "
      "Tensor temperatures) -> (Tensor logits, Tensor tokens, Tensor log_normalizers)");
}

TORCH_LIBRARY_IMPL(linnet, CPU, m) { m.impl("best_logits", BestLogits); }

TORCH_LIBRARY_IMPL(linnet, Autograd, m) {
  m.impl("best_logits", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace linnet::ops
