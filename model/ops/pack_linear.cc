#include "model/ops/pack_linear.h"

#include <ATen/OpaqueTensorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/cpu/Utils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/isfinite.h>
#include <torch/library.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/ops/checks.h"
#include "model/ops/cpu/packed_matrix.h"
#include "model/ops/mapped_memory.h"
#include "model/ops/packed_file.h"

namespace linnet::ops {
namespace {

using PackedImpl = at::OpaqueTensorImpl<std::shared_ptr<const PackedWeight>>;

// type: that of the other factor.
at::Tensor MakePacked(PackedWeight packed, at::ScalarType type, at::IntArrayRef shape) {
  return at::detail::make_tensor<PackedImpl>(
      c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(type), at::kCPU,
      std::make_shared<const PackedWeight>(std::move(packed)), shape);
}

// mkldnn::_reorder_linear_weight; LibTorch offers it through its dispatcher only.
at::Tensor MkldnnPack(const at::Tensor& weight) {
  using Call = at::Tensor(const at::Tensor&, std::optional<int64_t>);
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("mkldnn::_reorder_linear_weight", "")
                             .typed<Call>();
  return op.call(weight, std::nullopt);
}

// values: int8 [O, I], scales: float32 [O] -> float32 [O, I]
at::Tensor Dequantized(const at::Tensor& values, const at::Tensor& scales) {
  return values.to(at::kFloat).mul_(scales.unsqueeze(1));
}

// As one sum over the exponents, which the compiler vectorises.
bool AllFinite(std::span<const float> values) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t others = 0;
  for (const float value : values) {
    others += (std::bit_cast<uint32_t>(value) & kExponent) == kExponent;
  }
  return others == 0;
}

at::Tensor PackLinear(const at::Tensor& weight, c10::string_view type,
                      const std::optional<at::Tensor>& scales) {
  constexpr char kPack[] = "pack_linear";
  TORCH_CHECK(!IsPacked(weight), kPack, ": the weight is packed already");
  CheckRank(kPack, {"weight", weight}, 2, "[outputs, inputs]");
  const bool bfloat16 = type == "bfloat16";
  TORCH_CHECK(bfloat16 || type == "float32" || type == "int8", kPack, ": there is no type \"", type,
              "\": there are float32, bfloat16 and int8");
  TORCH_CHECK(!bfloat16 || HasBfloat16Gemm(), kPack,
              ": this processor has no instructions for bfloat16, pack float32 or int8");
  if (scales) {
    TORCH_CHECK(weight.scalar_type() == at::kChar, kPack, ": weight is ", weight.scalar_type(),
                ", with scales it must be Char");
    TORCH_CHECK(scales->scalar_type() == at::kFloat, kPack, ": scales is ", scales->scalar_type(),
                ", it must be Float");
    CheckRank(kPack, {"scales", *scales}, 1, "[outputs]");
    CheckSize(kPack, {"scales", *scales}, 0, "outputs", weight.sym_size(0), "weight");
  } else {
    TORCH_CHECK(weight.scalar_type() == at::kFloat || weight.scalar_type() == at::kBFloat16 ||
                    weight.scalar_type() == at::kHalf,
                kPack, ": weight is ", weight.scalar_type(),
                ", it must be Float, BFloat16 or Half, or Char with scales");
  }
  TORCH_CHECK(weight.size(0) >= 1, kPack, ": weight has no outputs");
  TORCH_CHECK(1 <= weight.size(1) && weight.size(1) <= PackedMatrix::kMaxInputs, kPack,
              ": weight has ", weight.size(1), " inputs, it must have between 1 and ",
              PackedMatrix::kMaxInputs);
  const at::Tensor dense = weight.detach().contiguous();
  if (bfloat16) {
    const at::Tensor floats = scales ? Dequantized(dense, *scales) : dense;
    return MakePacked({nullptr, MkldnnPack(floats.to(at::kBFloat16))}, at::kBFloat16,
                      weight.sizes());
  }
  const at::Tensor factors = scales ? scales->contiguous() : at::empty({0}, at::kFloat);
  at::Tensor block;  // the outputs that were read last: the whole weight is never there as float32
  const size_t row_bytes = dense.size(1) * dense.element_size();
  const auto* data = static_cast<const char*>(dense.const_data_ptr());
  size_t packed = 0;  // bytes
  const auto read = [&](int64_t first, int64_t count) {
    GiveBackPages(dense.storage().data_ptr(), data + packed, first * row_bytes - packed);
    packed = first * row_bytes;
    block = dense.narrow(0, first, count).to(at::kFloat);
    // Quantised they would become finite, and the model would answer as if nothing were wrong.
    const float* const values = block.const_data_ptr<float>();
    TORCH_CHECK(type != "int8" || AllFinite({values, static_cast<size_t>(block.numel())}), kPack,
                ": weight has a value that is not finite");
    return values;
  };
  const auto kind = type == "int8" ? PackedMatrix::Type::kInt8 : PackedMatrix::Type::kFloat32;
  const auto matrix = std::make_shared<PackedMatrix>(
      kind, dense.size(0), dense.size(1), read,
      std::span(factors.const_data_ptr<float>(), static_cast<size_t>(factors.numel())));
  if (PackedFile* const file = PackedFile::Current()) {
    if (auto shared = file->Share(matrix->bytes())) matrix->MoveTo(std::move(shared));
  }
  return MakePacked({matrix, {}}, at::kFloat, weight.sizes());
}

std::tuple<at::Tensor, at::Tensor> QuantizeLinear(const at::Tensor& weight) {
  constexpr char kQuantize[] = "quantize_linear";
  CheckRank(kQuantize, {"weight", weight}, 2, "[outputs, inputs]");
  TORCH_CHECK(weight.is_floating_point() && !IsPacked(weight), kQuantize, ": weight is ",
              weight.scalar_type(), ", it must be of a floating point type and not packed");
  const at::Tensor dense = weight.detach().to(at::kFloat).contiguous();
  TORCH_CHECK(at::isfinite(dense).all().item<bool>(), kQuantize,
              ": weight has a value that is not finite");
  const int64_t outputs = dense.size(0), inputs = dense.size(1);
  at::Tensor values = at::empty_like(dense, at::kChar);
  at::Tensor scales = at::empty({outputs}, dense.options());
  for (int64_t n = 0; n < outputs; ++n) {
    scales.mutable_data_ptr<float>()[n] =
        QuantizeOutput({dense.const_data_ptr<float>() + n * inputs, static_cast<size_t>(inputs)},
                       values.mutable_data_ptr<int8_t>() + n * inputs);
  }
  return {values, scales};
}

at::Tensor TakeOutputs(const at::Tensor& weight, const at::Tensor& outputs) {
  constexpr char kTake[] = "take_outputs";
  const PackedMatrix* matrix = FindPackedMatrix(weight);
  TORCH_CHECK(matrix != nullptr, kTake,
              ": weight must have been packed by pack_linear, for float32 or int8");
  CheckRank(kTake, {"outputs", outputs}, 1, "[N]");
  CheckIndices(kTake, {"weight", weight}, {{"outputs", outputs}});
  TORCH_CHECK(outputs.size(0) >= 1, kTake, ": outputs is empty");
  const at::Tensor dense = outputs.contiguous();
  const std::span<const int32_t> taken(dense.const_data_ptr<int32_t>(), dense.size(0));
  for (const int32_t output : taken) {
    TORCH_CHECK(0 <= output && output < matrix->outputs(), kTake, ": there is no output ", output,
                ", weight has ", matrix->outputs());
  }
  return MakePacked({std::make_shared<const PackedMatrix>(*matrix, taken), {}}, at::kFloat,
                    {outputs.size(0), weight.size(1)});
}

at::Tensor UnpackOutputs(const at::Tensor& weight, const at::Tensor& outputs) {
  constexpr char kUnpack[] = "unpack_outputs";
  const PackedMatrix* matrix = FindPackedMatrix(weight);
  TORCH_CHECK(matrix != nullptr, kUnpack,
              ": weight must have been packed by pack_linear, for float32 or int8");
  TORCH_CHECK(outputs.scalar_type() == at::kLong, kUnpack, ": outputs is ", outputs.scalar_type(),
              ", it must be int64");
  const at::Tensor dense = outputs.contiguous();
  std::vector<int64_t> shape = outputs.sizes().vec();
  shape.push_back(matrix->inputs());
  at::Tensor rows = at::empty(shape, weight.options().dtype(at::kFloat));
  float* row = rows.mutable_data_ptr<float>();
  for (int64_t i = 0; i < dense.numel(); ++i, row += matrix->inputs()) {
    const int64_t output = dense.const_data_ptr<int64_t>()[i];
    TORCH_CHECK(0 <= output && output < matrix->outputs(), kUnpack, ": there is no output ", output,
                ", weight has ", matrix->outputs());
    matrix->CopyOutput(output, row);
  }
  return rows;
}

}  // namespace

bool HasBfloat16Gemm() {
  static const bool has = [] {
    const auto processor = at::cpu::get_cpu_capabilities();
    const auto may = [&](const char* name) {
      const auto found = processor.find(name);
      return found != processor.end() && found->second.toBool();
    };
    return (may("avx512_bf16") || may("amx_bf16") || may("avx_ne_convert")) &&
           c10::Dispatcher::singleton()
               .findSchemaOrThrow("mkldnn::_is_mkldnn_bf16_supported", "")
               .typed<bool()>()
               .call();
  }();
  return has;
}

const PackedWeight* FindPacked(const at::Tensor& weight) {
  auto* impl = dynamic_cast<PackedImpl*>(weight.unsafeGetTensorImpl());
  return impl == nullptr ? nullptr : impl->opaque_handle().get();
}

bool IsPacked(const at::Tensor& weight) { return FindPacked(weight) != nullptr; }

const PackedMatrix* FindPackedMatrix(const at::Tensor& weight) {
  const PackedWeight* packed = FindPacked(weight);
  return packed == nullptr ? nullptr : packed->matrix.get();
}

TORCH_LIBRARY_FRAGMENT(linnet, m) {
  m.def("pack_linear(Tensor weight, str type, Tensor? scales=None) -> Tensor");
  m.def("quantize_linear(Tensor weight) -> (Tensor values, Tensor scales)");
  m.def("take_outputs(Tensor weight, Tensor outputs) -> Tensor");
  m.def("unpack_outputs(Tensor weight, Tensor outputs) -> Tensor");
}

TORCH_LIBRARY_IMPL(linnet, CPU, m) {
  m.impl("pack_linear", PackLinear);
  m.impl("quantize_linear", QuantizeLinear);
  m.impl("take_outputs", TakeOutputs);
  m.impl("unpack_outputs", UnpackOutputs);
}

}  // namespace linnet::ops
