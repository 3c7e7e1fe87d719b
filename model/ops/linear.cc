#include "model/ops/linear.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_addmm_activation.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/glu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <torch/library.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "model/ops/add_norm.h"
#include "model/ops/checks.h"
#include "model/ops/cpu/packed_matrix.h"
#include "model/ops/pack_linear.h"
#include "model/ops/params.h"

namespace linnet::ops {
namespace {

constexpr char kLinearOp[] = "linear";
constexpr double kDefaultEpsilon = 1e-5;

using OptionalTensor = std::optional<at::Tensor>;

Activation ActivationNamed(c10::string_view name) {
  if (name == "none") return Activation::kNone;
  if (name == "relu") return Activation::kRelu;
  if (name == "swish") return Activation::kSwish;
  if (name == "gelu") return Activation::kGelu;
  if (name == "glu") return Activation::kGlu;
  TORCH_CHECK(false, kLinearOp, ": there is no activation \"", name,
              "\": there are none, relu, swish, gelu and glu");
}

at::Tensor Activate(const at::Tensor& y, Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return y;
    case Activation::kRelu:
      return at::relu(y);
    case Activation::kSwish:
      return at::silu(y);
    case Activation::kGelu:
      return at::gelu(y);
    case Activation::kGlu:
      return at::glu(y);
  }
  return y;
}

void CheckVector(const char* name, const OptionalTensor& tensor, const at::Tensor& x,
                 const c10::SymInt& size) {
  if (!tensor) return;
  CheckRank(kLinearOp, {name, *tensor}, 1, "[N]");
  CheckSize(kLinearOp, {name, *tensor}, 0, "outputs", size, "weight");
  CheckFloats(kLinearOp, {{"x", x}, {name, *tensor}});
}

struct Arguments {
  const at::Tensor &x, &weight;
  const OptionalTensor &bias, &residual, &norm_weight, &norm_bias;
  Activation activation;
  double norm_epsilon;
  c10::SymInt width;  // of the result
};

void Check(const Arguments& a) {
  TORCH_CHECK(a.x.dim() >= 1, kLinearOp, ": x has no dimensions, it must be [..., inputs]");
  CheckRank(kLinearOp, {"weight", a.weight}, 2, "[outputs, inputs]");
  CheckFloats(kLinearOp, {{"x", a.x}, {"weight", a.weight}});
  CheckSize(kLinearOp, {"x", a.x}, a.x.dim() - 1, "inputs", a.weight.sym_size(1), "weight");
  if (a.activation == Activation::kGlu) {
    TORCH_CHECK(a.weight.sym_size(0) % 2 == 0, kLinearOp, ": weight has ", a.weight.sym_size(0),
                " outputs, glu needs an even number");
  }
  CheckVector("bias", a.bias, a.x, a.weight.sym_size(0));
  TORCH_CHECK(a.norm_weight.has_value() == a.norm_bias.has_value(), kLinearOp,
              ": norm_weight and norm_bias must be given together, one of them is missing");
  CheckEpsilon(kLinearOp, a.norm_epsilon);
  CheckVector("norm_weight", a.norm_weight, a.x, a.width);
  CheckVector("norm_bias", a.norm_bias, a.x, a.width);
  if (!a.residual) return;
  CheckFloats(kLinearOp, {{"x", a.x}, {"residual", *a.residual}});
  CheckRank(kLinearOp, {"residual", *a.residual}, a.x.dim(), "[..., outputs]");
  for (int64_t i = 0; i + 1 < a.x.dim(); ++i) {
    CheckSize(kLinearOp, {"residual", *a.residual}, i, "rows", a.x.sym_size(i), "x");
  }
  CheckSize(kLinearOp, {"residual", *a.residual}, a.x.dim() - 1, "outputs", a.width, "weight");
}

std::atomic<ChosenLinearFunction> chosen_linear = nullptr;

// Not for tensors without data, on which torch traces operators.
std::optional<at::Tensor> ChosenLinear(const at::Tensor& x, const at::Tensor& weight,
                                       const OptionalTensor& bias, bool relu, bool float32_result) {
  const ChosenLinearFunction function = chosen_linear.load();
  if (function == nullptr || !x.is_cuda() || x.key_set().has(c10::DispatchKey::Python) ||
      (at::GradMode::is_enabled() && (x.requires_grad() || weight.requires_grad()))) {
    return std::nullopt;
  }
  return function(x, weight, bias, relu, float32_result);
}

// With an unpacked weight.
at::Tensor DenseLinear(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias) {
  if (auto y = ChosenLinear(x, weight, bias, /*relu=*/false, /*float32_result=*/false)) return *y;
  return at::linear(x, weight, bias);
}

// On a GPU launching a small kernel costs as much as running it.
bool FusesOnCuda(const at::Tensor& y, const Arguments& a) {
  return y.is_cuda() && !(at::GradMode::is_enabled() && (y.requires_grad() || a.x.requires_grad()));
}

at::Tensor Finish(at::Tensor y, const Arguments& a) {
  y = Activate(y, a.activation);
  if (a.residual && a.norm_weight && FusesOnCuda(y, a)) {
    return CallAddNorm(y, *a.residual, *a.norm_weight, *a.norm_bias, a.norm_epsilon);
  }
  if (a.residual) y = at::add(y, *a.residual);
  if (a.norm_weight)
    y = at::layer_norm_symint(y, {a.width}, a.norm_weight, a.norm_bias, a.norm_epsilon);
  return y;
}

// mkldnn::_linear_pointwise; LibTorch offers it through its dispatcher only.
at::Tensor MkldnnLinear(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias) {
  using Call =
      at::Tensor(const at::Tensor&, const at::Tensor&, const OptionalTensor&, c10::string_view,
                 c10::List<std::optional<at::Scalar>>, std::optional<c10::string_view>);
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("mkldnn::_linear_pointwise", "").typed<Call>();
  return op.call(x, weight, bias, "none", c10::List<std::optional<at::Scalar>>(), "");
}

const float* DataOrNull(const OptionalTensor& dense) {
  return dense ? dense->const_data_ptr<float>() : nullptr;
}

OptionalTensor Dense(const OptionalTensor& tensor) {
  return tensor ? OptionalTensor(tensor->contiguous()) : std::nullopt;
}

at::Tensor MatrixLinear(const PackedMatrix& matrix, const Arguments& a) {
  std::vector<int64_t> shape = a.x.sizes().vec();
  shape.back() = a.width.expect_int();
  at::Tensor y = at::empty(shape, a.x.options());
  const at::Tensor x = a.x.contiguous();
  const OptionalTensor bias = Dense(a.bias), residual = Dense(a.residual),
                       norm_weight = Dense(a.norm_weight), norm_bias = Dense(a.norm_bias);
  const LinearParams params = {
      .weight = &matrix,
      .x = x.const_data_ptr<float>(),
      .bias = DataOrNull(bias),
      .activation = a.activation,
      .residual = DataOrNull(residual),
      .norm_weight = DataOrNull(norm_weight),
      .norm_bias = DataOrNull(norm_bias),
      .norm_epsilon = static_cast<float>(a.norm_epsilon),
      .y = y.mutable_data_ptr<float>(),
      .rows = x.numel() / matrix.inputs(),
      .width = shape.back(),
  };
  if (y.numel() > 0) LinearCpu(params);
  return y;
}

Arguments Checked(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias,
                  Activation activation, const OptionalTensor& residual,
                  const OptionalTensor& norm_weight, const OptionalTensor& norm_bias,
                  double norm_epsilon) {
  Arguments a = {x, weight, bias, residual, norm_weight, norm_bias, activation, norm_epsilon, 0};
  if (weight.dim() == 2) {
    a.width = a.activation == Activation::kGlu ? weight.sym_size(0) / 2 : weight.sym_size(0);
  }
  Check(a);
  return a;
}

at::Tensor FullLinear(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias,
                      c10::string_view activation, const OptionalTensor& residual,
                      const OptionalTensor& norm_weight, const OptionalTensor& norm_bias,
                      double norm_epsilon) {
  const Arguments a = Checked(x, weight, bias, ActivationNamed(activation), residual, norm_weight,
                              norm_bias, norm_epsilon);
  if (x.is_cuda() &&
      x.dim() > 2) {  // as rows: cuBLASLt's epilogues and the choice of gemms need it
    const OptionalTensor rows = residual ? OptionalTensor(residual->flatten(0, -2)) : std::nullopt;
    c10::SymDimVector sizes(x.sym_sizes().begin(), x.sym_sizes().end());
    sizes.back() = a.width;
    return FullLinear(x.flatten(0, -2), weight, bias, activation, rows, norm_weight, norm_bias,
                      norm_epsilon)
        .view_symint(sizes);
  }
  const PackedWeight* packed = FindPacked(weight);
  if (packed == nullptr && a.activation == Activation::kRelu && bias && x.dim() == 2 &&
      FusesOnCuda(x, a)) {
    // cuBLASLt's epilogue. That of gelu is another formula than ours.
    Arguments rest = a;
    rest.activation = Activation::kNone;
    auto y = ChosenLinear(x, weight, bias, /*relu=*/true, /*float32_result=*/false);
    return Finish(y ? *y : at::_addmm_activation(*bias, x, weight.t()), rest);
  }
  if (packed == nullptr) return Finish(DenseLinear(x, weight, bias), a);
  TORCH_CHECK(!x.requires_grad(), kLinearOp, ": packed weights have no gradients");
  if (packed->matrix) return MatrixLinear(*packed->matrix, a);
  return Finish(MkldnnLinear(x, packed->mkldnn, bias), a);
}

// On the CPU the sum is part of the gemm, and the norm is torch's.
SumAndNorm LinearNorm(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias,
                      const at::Tensor& residual, const at::Tensor& norm_weight,
                      const at::Tensor& norm_bias, double norm_epsilon) {
  const OptionalTensor none;
  const OptionalTensor own_residual = residual, own_weight = norm_weight, own_bias = norm_bias;
  const Arguments a =
      Checked(x, weight, bias, Activation::kNone, own_residual, own_weight, own_bias, norm_epsilon);
  if (!IsPacked(weight) && FusesOnCuda(x, a)) {
    return CallAddNormSum(DenseLinear(x, weight, bias), residual, norm_weight, norm_bias,
                          norm_epsilon);
  }
  at::Tensor sum = FullLinear(x, weight, bias, "none", own_residual, none, none, norm_epsilon);
  at::Tensor y = at::layer_norm_symint(sum, {a.width}, norm_weight, norm_bias, norm_epsilon);
  return {std::move(sum), std::move(y)};
}

}  // namespace

void SetChosenLinear(ChosenLinearFunction function) { chosen_linear = function; }

at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias) {
  return LinearWith(x, weight, bias, "none");
}

at::Tensor LinearWith(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias,
                      c10::string_view activation) {
  return FullLinear(x, weight, bias, activation, {}, {}, {}, kDefaultEpsilon);
}

at::Tensor LinearInFloat32(const at::Tensor& x, const at::Tensor& weight,
                           const OptionalTensor& bias) {
  constexpr char kName[] = "linear_in_float32";
  TORCH_CHECK(!IsPacked(weight), kName, ": the weight is packed");
  CheckFloats(kName, {{"x", x}, {"weight", weight}});
  CheckRank(kName, {"x", x}, 2, "[R, I]");
  CheckRank(kName, {"weight", weight}, 2, "[O, I]");
  CheckSize(kName, {"x", x}, 1, "inputs", weight.sym_size(1), "weight");
  if (bias) {
    CheckRank(kName, {"bias", *bias}, 1, "[O]");
    CheckSize(kName, {"bias", *bias}, 0, "outputs", weight.sym_size(0), "weight");
    TORCH_CHECK(bias->scalar_type() == at::kFloat, kName, ": bias is ", bias->scalar_type(),
                ", it must be float32");
  }
  if (!x.is_cuda() || x.scalar_type() == at::kFloat) {
    return at::linear(x.to(at::kFloat), weight.to(at::kFloat), bias);
  }
  if (auto y = ChosenLinear(x, weight, bias, /*relu=*/false, /*float32_result=*/true)) return *y;
  at::Tensor y = at::mm(x, weight.t(), at::kFloat);
  return bias ? y.add_(*bias) : y;
}

void CheckLinear(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias) {
  const OptionalTensor none;
  Checked(x, weight, bias, Activation::kNone, none, none, none, kDefaultEpsilon);
}

TORCH_LIBRARY_FRAGMENT(linnet, m) {
  m.def(
      "linear(Tensor x, Tensor weight, Tensor? bias, str activation=\"none\", "
      "Tensor? residual=None, Tensor? norm_weight=None, Tensor? norm_bias=None, "
      "float norm_epsilon=1e-5) -> Tensor",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "linear_norm(Tensor x, Tensor weight, Tensor? bias, Tensor residual, Tensor norm_weight, "
      "Tensor norm_bias, float norm_epsilon=1e-5) -> (Tensor sum, Tensor y)",
      {at::Tag::pt2_compliant_tag});
  m.def("linear_in_float32(Tensor x, Tensor weight, Tensor? bias) -> Tensor");
}

TORCH_LIBRARY_IMPL(linnet, CompositeImplicitAutograd, m) {
  m.impl("linear", FullLinear);
  m.impl("linear_norm", LinearNorm);
  m.impl("linear_in_float32", LinearInFloat32);
}

}  // namespace linnet::ops
