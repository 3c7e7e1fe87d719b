#pragma once

#include <vector>

#include "absl/time/time.h"
#include "server/base/caller.h"

namespace linnet::server {

// One waiting or running sequence, in numbers only: no user text.
struct SequenceSnapshot {
  Caller caller;
  bool running = false;
  int rows = 0;
  int source_tokens = 0;
  int max_target_tokens = 0;
  int steps = 0;  // target tokens so far
  absl::Time submitted;
  absl::Time added_at = absl::InfiniteFuture();
  absl::Time deadline = absl::InfiniteFuture();
};

// State of a batch between two steps, for the debug RPC.
struct BatchSnapshot {
  // If not zero, the engine has been in one call for this long, and no other field is set.
  absl::Duration in_call_for = absl::ZeroDuration();
  int rows_in_use = 0;
  int running = 0;
  int waiting = 0;
  // The running sequences, then the waiting ones in the order in which they will be added; cut
  // at the number that was asked for.
  std::vector<SequenceSnapshot> sequences = {};
};

}  // namespace linnet::server
