#pragma once

#include <algorithm>
#include <optional>

#include "absl/time/time.h"
#include "server/base/monotonic.h"

namespace linnet::server {

// Computes the delay before a failed engine is rebuilt: zero after the first failure, then one
// second, doubled with every further failure up to a minute. After a minute without a failure the
// delay is reset. Gives up after max_failed_rebuilds consecutive rebuilds without a completed step.
// Deterministic: time is passed in. Not thread-safe.
class RestartPolicy {
 public:
  explicit RestartPolicy(int max_failed_rebuilds = 5) : max_failed_rebuilds_(max_failed_rebuilds) {}

  absl::Duration Failed(MonotonicTime now) {
    if (last_.has_value() && Elapsed(*last_, now) > kMaxDelay) delay_ = absl::ZeroDuration();
    const absl::Duration delay = delay_;
    last_ = After(now, delay);
    delay_ = std::clamp(2 * delay_, kMinDelay, kMaxDelay);
    return delay;
  }
  // Call it before each rebuild.
  void Rebuilding() { ++rebuilds_; }
  // Call it after each completed step.
  void Stepped() { rebuilds_ = 0; }
  bool give_up() const { return rebuilds_ >= max_failed_rebuilds_; }

 private:
  static constexpr absl::Duration kMinDelay = absl::Seconds(1);
  static constexpr absl::Duration kMaxDelay = absl::Minutes(1);

  const int max_failed_rebuilds_;
  absl::Duration delay_ = absl::ZeroDuration();
  std::optional<MonotonicTime> last_;
  int rebuilds_ = 0;  // since the last step
};

}  // namespace linnet::server
