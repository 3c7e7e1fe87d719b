#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "model/runtime/engine.h"

namespace linnet::server {

// A measurement: random sources, all of one length, and targets that end after exactly so many
// steps.
struct SyntheticLoad {
  int batch = 32;          // sequences, seated together
  int source_tokens = 30;  // end token counted
  int target_tokens = 30;  // likewise: the number of steps
  int repeat = 5;          // after one that is not counted
  uint64_t seed = 1;
  bool step_seconds = false;     // whether the time of each step is told too
  model::SearchOptions options;  // but for the token limits
};

// Decodes the load `repeat` times and returns one line of JSON. The engine must mask the end token
// (TorchEngineOptions.mask_eos).
absl::StatusOr<std::string> MeasureSynthetic(model::Engine& engine, const SyntheticLoad& load);

}  // namespace linnet::server
