#pragma once

#include "absl/time/time.h"
#include "server/schedule/batcher_options.h"

namespace linnet::server {

// Limits how long calls may wait under overload; the batcher sheds the calls beyond the limit. A
// queue that empties from time to time absorbs a burst and is left alone. A queue that never
// empties makes every call late, and the engine decodes for clients that have given up.
//
// Source: the adaptive timeouts of Maurer, Fail at Scale (ACM Queue 2015), after CoDel (Nichols and
// Jacobson 2012). Deterministic: time is passed in. Not thread-safe.
class ShedPolicy {
 public:
  explicit ShedPolicy(const ShedOptions& options) : options_(options) {}

  // Call it after every step, and before a call waits where none did. `waiting`: there is a call
  // that waits and that the step has not started either.
  void Step(bool waiting, absl::Time now) {
    if (!waiting || since_ > now) since_ = now;
  }
  bool overloaded(absl::Time now) const { return now - since_ > options_.interval; }
  // Max time that a call may wait for its first sequence to be added to the batch.
  absl::Duration max_wait(absl::Time now) const {
    return overloaded(now) ? options_.max_wait : absl::InfiniteDuration();
  }

 private:
  ShedOptions options_;
  absl::Time since_ = absl::InfiniteFuture();  // calls have waited without a break since then
};

}  // namespace linnet::server
