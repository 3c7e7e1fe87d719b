#pragma once

#include <vector>

#include "absl/time/time.h"
#include "server/base/caller.h"

namespace linnet::server {

// One sequence that waits or is seated, as numbers: nothing of its text.
struct SequenceSnapshot {
  Caller caller;
  bool running = false;
  int rows = 0;
  int source_tokens = 0;
  int max_target_tokens = 0;
  int steps = 0;  // target tokens so far
  absl::Time submitted;
  absl::Time admitted_at = absl::InfiniteFuture();
  absl::Time deadline = absl::InfiniteFuture();
};

// What is in a batch between two steps, for who looks into it.
struct BatchSnapshot {
  // Not zero: the engine had been in one call for so long, and the rest is not known.
  absl::Duration in_call_for = absl::ZeroDuration();
  int rows_in_use = 0;
  int running = 0;
  int waiting = 0;
  // The seated, then the waiting in the order in which they will sit down; as many as were wanted.
  std::vector<SequenceSnapshot> sequences = {};
};

}  // namespace linnet::server
