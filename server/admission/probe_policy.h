#pragma once

#include <algorithm>
#include <utility>

#include "absl/time/time.h"

namespace linnet::server {

// Admits some calls to an idle engine although their deadlines seem too short (probes). Latency
// estimates are learned from decoded calls, so without probes an estimate that is too high and
// rejects every call would never be corrected.
//
// A probe ends at its own deadline, and the pause between probes limits them to a tenth of the time
// of an otherwise idle engine. Deterministic: time is passed in. Not thread-safe.
class ProbePolicy {
 public:
  ProbePolicy() = default;
  // One whose first probe comes after a pause too, for probes that cost others something.
  static ProbePolicy AfterAPause() {
    ProbePolicy policy;
    policy.waits_ = true;
    return policy;
  }

  // `cost`: max time that the probe occupies the engine.
  bool Admit(absl::Time now, absl::Duration cost) {
    if (cost <= absl::ZeroDuration()) return false;
    if (now >= last_ && now - last_ < pause_) return false;
    last_ = now;
    pause_ = std::max(cost, kMinCost) / kShare;
    return !std::exchange(waits_, false);
  }

 private:
  static constexpr double kShare = 0.1;
  // A probe costs at least one step: a step cannot be interrupted.
  static constexpr absl::Duration kMinCost = absl::Milliseconds(10);

  absl::Time last_ = absl::InfinitePast();
  absl::Duration pause_ = absl::ZeroDuration();
  bool waits_ = false;
};

}  // namespace linnet::server
