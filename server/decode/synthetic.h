#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "model/runtime/engine.h"

namespace linnet::server {

// A benchmark: random sources of one length, and targets of exactly one length.
struct SyntheticLoad {
  int batch = 32;          // sequences, added together
  int source_tokens = 30;  // including the end token
  int target_tokens = 30;  // including the end token: the number of steps
  int repeat = 5;          // measured runs, after a warm-up run
  uint64_t seed = 1;
  bool step_seconds = false;     // report the time of each step too
  model::SearchOptions options;  // the token limits are overwritten
};

// Decodes the load `repeat` times and returns the results as one line of JSON. The engine must mask
// the end token (TorchEngineOptions.mask_eos).
absl::StatusOr<std::string> MeasureSynthetic(model::Engine& engine, const SyntheticLoad& load);

}  // namespace linnet::server
