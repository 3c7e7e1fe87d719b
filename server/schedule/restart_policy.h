#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace linnet::server {

// How long to wait before an engine that failed is made again: not at all the first time, then a
// second, and twice as long after every further failure, up to a minute. An engine that has worked
// for a minute since has a clean record. Plain, time is passed in.
class RestartPolicy {
 public:
  absl::Duration Failed(absl::Time now) {
    if (now - last_ > kLongest) delay_ = absl::ZeroDuration();
    const absl::Duration delay = delay_;
    last_ = now + delay;
    delay_ = std::clamp(2 * delay_, kFirst, kLongest);
    return delay;
  }

 private:
  static constexpr absl::Duration kFirst = absl::Seconds(1);
  static constexpr absl::Duration kLongest = absl::Minutes(1);

  absl::Duration delay_ = absl::ZeroDuration();
  absl::Time last_ = absl::InfinitePast();
};

}  // namespace linnet::server
