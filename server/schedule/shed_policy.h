#pragma once

#include <utility>

#include "absl/time/time.h"
#include "server/schedule/batcher_options.h"

namespace linnet::server {

// Limits how long calls may wait under overload; the batcher sheds the calls beyond the limit. A
// queue that empties from time to time, or to which few calls come while it is worked off, absorbs
// a burst and is left alone. Any other queue makes every call late, and the engine decodes for
// clients that have given up.
//
// Source: the adaptive timeouts of Maurer, Fail at Scale (ACM Queue 2015), after CoDel (Nichols and
// Jacobson 2012). Deterministic: time is passed in. Not thread-safe.
class ShedPolicy {
 public:
  explicit ShedPolicy(const ShedOptions& options) : options_(options) {}

  // A call has come, or its first sequence was added to the batch.
  void Arrived() { ++calls_.arrived; }
  void Started() { ++calls_.started; }
  // Call it after every step, and before a call waits where none did. `waiting`: there is a call
  // that waits and that the step has not started either.
  void Step(bool waiting, absl::Time now) {
    if (!waiting || since_ > now) since_ = now;
    if (now < end_) return;
    before_ = std::exchange(calls_, {});
    if (now >= end_ + options_.max_wait) before_ = {};
    end_ = now + options_.max_wait;
  }
  bool overloaded(absl::Time now) const {
    return now - since_ > options_.interval &&
           calls_.arrived + before_.arrived >= kSteady * (calls_.started + before_.started);
  }
  // Max time that a call may wait for its first sequence to be added to the batch.
  absl::Duration max_wait(absl::Time now) const {
    return overloaded(now) ? options_.max_wait : absl::InfiniteDuration();
  }

 private:
  // Calls that come by calls that start, above which the queue is not worked off.
  static constexpr double kSteady = 0.75;

  ShedOptions options_;
  absl::Time since_ = absl::InfiniteFuture();  // calls have waited without a break since then
  // Calls of a period of max_wait that ends at end_, and of the one before it.
  struct Calls {
    int arrived = 0, started = 0;
  };
  Calls calls_, before_;
  absl::Time end_ = absl::InfinitePast();
};

}  // namespace linnet::server
