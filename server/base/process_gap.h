#pragma once

#include <optional>

#include "absl/time/time.h"
#include "server/base/monotonic.h"

namespace linnet::server {

// Notices that the process did not run for a while: it was stopped (SIGSTOP), its container was
// paused, or its machine was suspended or had no time for it. Timeouts that others have to keep do
// not count that time. Not thread-safe.
class ProcessGap {
 public:
  // Observe is called more often than every `max`; a longer interval is a gap.
  explicit ProcessGap(absl::Duration max) : max_(max) {}

  // Returns how long the process did not run before now; zero as a rule.
  absl::Duration Observe(MonotonicTime now) {
    const absl::Duration since = last_.has_value() ? Elapsed(*last_, now) : absl::ZeroDuration();
    last_ = now;
    return since > max_ ? since : absl::ZeroDuration();
  }

 private:
  const absl::Duration max_;
  std::optional<MonotonicTime> last_;
};

}  // namespace linnet::server
