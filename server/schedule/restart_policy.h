#pragma once

#include <algorithm>
#include <optional>

#include "absl/time/time.h"
#include "server/base/monotonic.h"

namespace linnet::server {

// How long to wait before an engine that failed is made again: not at all the first time, then a
// second, and twice as long after every further failure, up to a minute. An engine that has worked
// for a minute since has a clean record. And when to give up: after so many rebuilds in a row that
// brought no engine that made a step. Plain, time is passed in.
class RestartPolicy {
 public:
  explicit RestartPolicy(int max_failed_rebuilds = 5) : max_failed_rebuilds_(max_failed_rebuilds) {}

  absl::Duration Failed(MonotonicTime now) {
    if (last_.has_value() && Elapsed(*last_, now) > kLongest) delay_ = absl::ZeroDuration();
    const absl::Duration delay = delay_;
    last_ = After(now, delay);
    delay_ = std::clamp(2 * delay_, kFirst, kLongest);
    return delay;
  }
  // A rebuild is about to begin.
  void Rebuilding() { ++rebuilds_; }
  // The engine made a step.
  void Stepped() { rebuilds_ = 0; }
  bool give_up() const { return rebuilds_ >= max_failed_rebuilds_; }

 private:
  static constexpr absl::Duration kFirst = absl::Seconds(1);
  static constexpr absl::Duration kLongest = absl::Minutes(1);

  const int max_failed_rebuilds_;
  absl::Duration delay_ = absl::ZeroDuration();
  std::optional<MonotonicTime> last_;
  int rebuilds_ = 0;  // since the last step
};

}  // namespace linnet::server
