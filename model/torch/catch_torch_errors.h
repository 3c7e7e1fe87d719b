#pragma once

#include <exception>
#include <string>
#include <type_traits>

#include "absl/status/status.h"

namespace linnet::model {

// The first line of what torch threw, without its C++ backtrace and TorchScript's listing:
// InternalError, ResourceExhaustedError for lack of memory; marked as DeviceLost (engine.h) where
// CUDA can do no more in this process.
absl::Status StatusOfException(const std::string& doing, const std::exception& exception);

// Exceptions stop here: runs `body`, which returns an absl::Status and may call torch, under the
// settings that torch keeps per thread. Gradients are off, and TorchScript interprets the graph as
// it is instead of profiling and rewriting it in the first calls of each shape.
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
