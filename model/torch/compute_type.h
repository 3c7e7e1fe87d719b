#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/torch/torch_engine.h"

namespace linnet::model {

// Never kAuto (torch_engine.h says what it becomes). `packable`: the bundle's weights can be
// packed. FailedPreconditionError, with the list of what there is, for a type in which the device
// does not compute.
absl::StatusOr<ComputeType> ResolveComputeType(ComputeType compute, Device device, bool packable);

// The type of what passes between operators, of state and memory, and of what is not packed.
at::ScalarType ScalarTypeOf(ComputeType compute);

// FailedPreconditionError if a finite value of the weight is beyond what float16 holds, and `type`
// is that: it would become infinite. Other types hold all that float32 holds.
absl::Status CheckRange(const std::string& name, const at::Tensor& weight, at::ScalarType type);

const char* ComputeTypeName(ComputeType compute);

}  // namespace linnet::model
