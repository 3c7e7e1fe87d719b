#include "model/torch/compute_type.h"

#include <ATen/cpu/Utils.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace linnet::model {
namespace {

bool CpuMultipliesBfloat16() {
  const auto capabilities = at::cpu::get_cpu_capabilities();
  for (const char* name : kBfloat16Capabilities) {
    const auto found = capabilities.find(name);
    if (found != capabilities.end() && found->second.isBool() && found->second.toBool())
      return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<Device> ParseDevice(std::string_view name) {
  if (name == "cpu") return Device::kCpu;
  if (name == "cuda") return Device::kCuda;
  return absl::InvalidArgumentError(
      absl::StrCat("no device \"", std::string(name), "\": there are cpu and cuda"));
}

absl::StatusOr<ComputeType> ParseComputeType(std::string_view name) {
  if (name == "auto") return ComputeType::kAuto;
  if (name == "float32") return ComputeType::kFloat32;
  if (name == "bfloat16") return ComputeType::kBfloat16;
  if (name == "float16") return ComputeType::kFloat16;
  return absl::InvalidArgumentError(
      absl::StrCat("compute type \"", std::string(name),
                   "\" is not built: there are auto, float32, bfloat16 and, on cuda, float16"));
}

absl::StatusOr<at::ScalarType> ResolveComputeType(ComputeType compute, Device device) {
  switch (compute) {
    case ComputeType::kAuto:
      if (device == Device::kCuda) return at::kHalf;
      return CpuMultipliesBfloat16() ? at::kBFloat16 : at::kFloat;
    case ComputeType::kFloat32:
      return at::kFloat;
    case ComputeType::kBfloat16:
      return at::kBFloat16;
    case ComputeType::kFloat16:
      if (device == Device::kCuda) return at::kHalf;
      return absl::FailedPreconditionError(
          "compute type float16 is not built for device cpu: there are auto, float32 and bfloat16");
  }
  return absl::InternalError(
      absl::StrCat("compute type ", static_cast<int>(compute), " has no name"));
}

const char* ComputeTypeName(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "float32";
    case at::kBFloat16:
      return "bfloat16";
    case at::kHalf:
      return "float16";
    default:
      return "unknown";
  }
}

}  // namespace linnet::model
