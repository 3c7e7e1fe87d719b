#pragma once

#include <c10/core/Device.h>

#include "absl/status/statusor.h"
#include "model/torch/torch_engine.h"

namespace linnet::model {

// Makes the device usable. For CUDA that loads LibTorch's CUDA half and our kernels into the
// process: a CPU process needs neither, and this library is built without CUDA's headers.
// FailedPreconditionError says what is missing.
absl::StatusOr<at::Device> OpenDevice(Device device);

}  // namespace linnet::model
