#pragma once

#include <c10/core/ScalarType.h>

#include "absl/status/statusor.h"
#include "model/torch/torch_engine.h"

namespace linnet::model {

// What torch calls the instructions that multiply bfloat16 (at::cpu::get_cpu_capabilities).
inline constexpr const char* kBfloat16Capabilities[] = {"avx512_bf16", "amx_bf16"};

// The type that weights, state and memory take. kAuto is float16 on CUDA; on the CPU it is bfloat16
// where the processor multiplies it in hardware (AVX512-BF16, AMX), and float32 elsewhere.
// FailedPreconditionError, with the list of what there is, for a type in which the device does not
// compute.
absl::StatusOr<at::ScalarType> ResolveComputeType(ComputeType compute, Device device);

const char* ComputeTypeName(at::ScalarType type);

}  // namespace linnet::model
