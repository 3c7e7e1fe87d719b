#pragma once

#include <c10/core/Device.h>

#include "absl/status/statusor.h"
#include "model/torch/module/engine_options.h"

namespace linnet::model {

// Makes the device usable. For CUDA it loads LibTorch's CUDA libraries and liblinnet_ops_cuda into
// the process: a CPU process needs neither, and this library is built without CUDA headers. Returns
// FailedPreconditionError with the missing part.
absl::StatusOr<at::Device> OpenDevice(Device device);

}  // namespace linnet::model
