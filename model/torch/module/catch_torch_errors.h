#pragma once

#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <exception>
#include <string>
#include <type_traits>

#include "absl/status/status.h"

namespace linnet::model {

// Converts an exception of torch to a status with its first line, without the C++ backtrace and the
// TorchScript listing: ResourceExhaustedError if memory ran out, else InternalError. Marks it as
// DeviceLost (engine.h) if the CUDA context of this process is unusable.
absl::Status StatusOfException(const std::string& doing, const std::exception& exception);

// The modes of a thread that calls torch: gradients are off, and TorchScript interprets the graph
// as it is instead of profiling and rewriting it in the first calls of each shape.
struct ThreadModes {
  c10::InferenceMode inference;
  torch::jit::GraphOptimizerEnabledGuard interpret{false};
};

// Runs `body`, which returns an absl::Status and may call torch, in ThreadModes, and converts its
// exceptions to a status.
absl::Status CatchTorchErrors(const std::string& doing, absl::Status (*call)(void* body),
                              void* body);

template <class Body>
absl::Status CatchTorchErrors(const std::string& doing, Body&& body) {
  return CatchTorchErrors(
      doing,
      [](void* b) -> absl::Status { return (*static_cast<std::remove_reference_t<Body>*>(b))(); },
      &body);
}

}  // namespace linnet::model
