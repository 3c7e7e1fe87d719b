#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace linnet::server {

// Which calls an idle engine decodes although their deadlines seem too short. Estimates are learned
// from calls that are decoded, so a wrong one that refuses every call would never be corrected.
//
// A probe is ended by its own deadline, so probes take a tenth of the engine's time at most, and of
// an engine that has nothing else to do. Plain, time is passed in.
class ProbePolicy {
 public:
  bool Admit(absl::Time now, absl::Duration time_left) {
    if (time_left <= absl::ZeroDuration()) return false;
    if (now >= last_ && now - last_ < pause_) return false;
    last_ = now;
    pause_ = std::max(time_left, kMinCost) / kShare;
    return true;
  }

 private:
  static constexpr double kShare = 0.1;
  // A step that has begun is made to its end.
  static constexpr absl::Duration kMinCost = absl::Milliseconds(10);

  absl::Time last_ = absl::InfinitePast();
  absl::Duration pause_ = absl::ZeroDuration();
};

}  // namespace linnet::server
