#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/torch/module/engine_options.h"

namespace linnet::model {

// Resolves kAuto (torch_engine.h) and checks other types. Returns FailedPreconditionError with the
// list of supported types for a type that the device does not support.
absl::StatusOr<ComputeType> ResolveComputeType(ComputeType compute, Device device);

// The type of activations, decoder state, encoder cache and unpacked weights.
at::ScalarType TorchType(ComputeType compute);

// Returns FailedPreconditionError if `type` is float16 and a finite value of the weight exceeds its
// range, and would become infinite. The other types have the range of float32.
absl::Status CheckRange(const std::string& name, const at::Tensor& weight, at::ScalarType type);

const char* ComputeTypeName(ComputeType compute);

}  // namespace linnet::model
