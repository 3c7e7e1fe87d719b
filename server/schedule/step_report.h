#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace linnet::server {

// Counts and times of one Batcher::Step, for the metrics and the latency estimates. Counts are of
// sequences in this step unless the comment names another unit.
struct StepReport {
  int waiting = 0;                // after the step
  int examined = 0;               // waiting sequences that the step inspected
  int running = 0;                // after the step
  int examined_running = 0;       // calls in runs, and sequences, whose end the step looked for
  int sequences = 0;              // that the engine's step decodes, so without the paused ones
  int rows = 0;                   // of these
  int added = 0;                  // encoded and added to the running batch
  int encoder_calls = 0;          // calls of Engine::Add
  int encoded_tokens = 0;         // source tokens of the added sequences, without padding
  int padded_encoded_tokens = 0;  // the same with padding
  int finished = 0;
  int cancelled = 0;
  int expired = 0;
  int failed = 0;
  int shed = 0;                 // ended by ShedPolicy because they had waited too long
  int coalesced = 0;            // joined the run of an identical sequence
  int cache_hits = 0;           // answered from the cache when they were submitted
  int cache_misses = 0;         // added, with a key
  int oom_retries = 0;          // encoder groups halved because the whole did not fit in memory
  int target_tokens = 0;        // tokens of the best hypotheses of the finished sequences
  bool full = false;            // no free rows or encoder cache for the next waiting sequence
  int64_t finished_tokens = 0;  // source plus max target tokens of the finished sequences
  int64_t finished_steps = 0;   // steps that the finished sequences took, summed
  int64_t finished_source_tokens = 0;
  int64_t running_source_tokens = 0;             // of the sequences that run before the step
  int64_t running_steps = 0;                     // that these have taken before it, summed
  int rows_limit = 0;                            // rows of the engine
  bool stepped = false;                          // the engine made a step
  absl::Duration encode = absl::ZeroDuration();  // time inside Engine::Add
  absl::Duration decode = absl::ZeroDuration();  // time inside Engine::Step
  absl::Time ended = absl::InfinitePast();       // when Engine::Step returned
  // Request ids of the calls whose sequences were running when an engine call failed, of all the
  // failed calls of the step: after a failed Add, Step fails too, without the added sequences.
  std::vector<std::string> failed_requests = {};
};

}  // namespace linnet::server
