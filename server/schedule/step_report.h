#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace linnet::server {

// What one Step did, for the metrics.
struct StepReport {
  int waiting = 0;                // after the step
  int examined = 0;               // waiting sequences that the step looked at
  int running = 0;                // after the step
  int sequences = 0;              // that took part in the step
  int rows = 0;                   // of the engine in use during the step
  int admitted = 0;               // sequences, in this step
  int encoder_calls = 0;          // that they took
  int encoded_tokens = 0;         // of the newcomers, without padding
  int padded_encoded_tokens = 0;  // and with it
  int finished = 0;
  int cancelled = 0;
  int expired = 0;
  int failed = 0;
  int shed = 0;                 // turned away because they had waited too long
  int oom_retries = 0;          // groups halved because there was no memory to encode the whole
  int target_tokens = 0;        // of the best hypotheses that finished
  bool full = false;            // all places are taken, and somebody waits for one
  int64_t finished_tokens = 0;  // source and max target tokens of those that finished
  int64_t finished_steps = 0;   // in which they took part, summed up
  int rows_limit = 0;           // of the engine
  bool stepped = false;         // the engine made a step
  absl::Duration encode = absl::ZeroDuration();  // inside Engine::Seat
  absl::Duration decode = absl::ZeroDuration();  // inside Engine::Step
  absl::Time ended = absl::InfinitePast();       // when Engine::Step had returned
  // Request ids of the calls that were in an engine call that failed.
  std::vector<std::string> failed_requests = {};
};

}  // namespace linnet::server
