#include "model/torch/module/compute_type.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/max.h>
#include <c10/util/Half.h>

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/ops/cpu/gemm.h"
#include "model/ops/pack_linear.h"

namespace linnet::model {
absl::StatusOr<Device> ParseDevice(absl::string_view name) {
  if (name == "cpu") return Device::kCpu;
  if (name == "cuda") return Device::kCuda;
  return absl::InvalidArgumentError(
      absl::StrCat("no device \"", name, "\": there are cpu and cuda"));
}

absl::StatusOr<ComputeType> ParseComputeType(absl::string_view name) {
  if (name == "auto") return ComputeType::kAuto;
  if (name == "float32") return ComputeType::kFloat32;
  if (name == "bfloat16") return ComputeType::kBfloat16;
  if (name == "float16") return ComputeType::kFloat16;
  if (name == "int8") return ComputeType::kInt8;
  return absl::InvalidArgumentError(
      absl::StrCat("compute type \"", name,
                   "\" is not built: there are auto, float32, bfloat16, on the CPU int8 and, on "
                   "cuda, float16"));
}

absl::StatusOr<ShortlistUse> ParseShortlistUse(absl::string_view name) {
  if (name == "auto") return ShortlistUse::kAuto;
  if (name == "true") return ShortlistUse::kAlways;
  if (name == "false") return ShortlistUse::kNever;
  return absl::InvalidArgumentError(
      absl::StrCat("shortlist \"", name, "\" is unknown, there are auto, true and false"));
}

absl::StatusOr<SearchPlace> ParseSearchPlace(absl::string_view name) {
  if (name == "auto") return SearchPlace::kAuto;
  if (name == "host") return SearchPlace::kHost;
  if (name == "device") return SearchPlace::kDevice;
  return absl::InvalidArgumentError(
      absl::StrCat("no place to search \"", name, "\": there are auto, host and device"));
}

absl::StatusOr<ComputeType> ResolveComputeType(ComputeType compute, Device device) {
  switch (compute) {
    case ComputeType::kAuto:
      if (device == Device::kCuda) return ComputeType::kFloat16;
      return ops::HasVnni() ? ComputeType::kInt8 : ComputeType::kFloat32;
    case ComputeType::kFloat32:
      return compute;
    case ComputeType::kBfloat16:
      if (device == Device::kCuda || ops::HasBfloat16Gemm()) return compute;
      return absl::FailedPreconditionError(
          "compute type bfloat16 needs a processor with AVX512-BF16, AMX-BF16 or AVX-NE-CONVERT, "
          "and this one has none of them: use float32 or int8");
    case ComputeType::kFloat16:
      if (device == Device::kCuda) return compute;
      return absl::FailedPreconditionError(
          "compute type float16 is not built for device cpu: there are auto, float32, bfloat16 and "
          "int8");
    case ComputeType::kInt8:
      if (device == Device::kCuda) {
        return absl::FailedPreconditionError(
            "compute type int8 is not built for device cuda: there are auto, float32, bfloat16 and "
            "float16");
      }
      return compute;
  }
  return absl::InternalError(
      absl::StrCat("compute type ", static_cast<int>(compute), " has no name"));
}

at::ScalarType TorchType(ComputeType compute) {
  if (compute == ComputeType::kBfloat16) return at::kBFloat16;
  if (compute == ComputeType::kFloat16) return at::kHalf;
  return at::kFloat;
}

absl::Status CheckRange(const std::string& name, const at::Tensor& weight, at::ScalarType type) {
  if (type != at::kHalf || weight.numel() == 0) return absl::OkStatus();
  const double limit = std::numeric_limits<c10::Half>::max();
  const double highest = at::max(at::abs(weight)).item<double>();
  if (!(highest > limit)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("weight ", name, " has a value of ", highest,
                                                    ", float16 holds at most ", limit,
                                                    ": use bfloat16 or float32"));
}

const char* ComputeTypeName(ComputeType compute) {
  switch (compute) {
    case ComputeType::kAuto:
      return "auto";
    case ComputeType::kFloat32:
      return "float32";
    case ComputeType::kBfloat16:
      return "bfloat16";
    case ComputeType::kFloat16:
      return "float16";
    case ComputeType::kInt8:
      return "int8";
  }
  return "unknown";
}

}  // namespace linnet::model
