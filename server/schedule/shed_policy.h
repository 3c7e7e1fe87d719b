#pragma once

#include "absl/time/time.h"

namespace linnet::server {

struct ShedOptions {
  // Overloaded is who has had somebody waiting for longer than this without a break; by default
  // nobody ever is.
  absl::Duration interval = absl::InfiniteDuration();
  // Then a call waits no longer than this for the first of its places.
  absl::Duration max_wait = absl::Seconds(2);
};

// When those who wait are turned away again. A burst is waited out; but a queue that never empties
// makes everybody late, and work that is done for callers who have given up is done for nothing. So
// it is kept short for as long as it stands.
//
// Adaptive timeouts as in Maurer, Fail at Scale (ACM Queue 2015), after CoDel (Nichols and Jacobson
// 2012). Plain, time is passed in.
class ShedPolicy {
 public:
  explicit ShedPolicy(const ShedOptions& options) : options_(options) {}

  // At every step: is there a call of which nothing has been seated yet?
  void Step(bool somebody_waits, absl::Time now) {
    if (!somebody_waits || since_ > now) since_ = now;
  }
  bool overloaded(absl::Time now) const { return now - since_ > options_.interval; }
  // How long a call may wait for the first of its places.
  absl::Duration max_wait(absl::Time now) const {
    return overloaded(now) ? options_.max_wait : absl::InfiniteDuration();
  }

 private:
  ShedOptions options_;
  absl::Time since_ = absl::InfiniteFuture();  // somebody has been waiting
};

}  // namespace linnet::server
