#pragma once

#include <algorithm>
#include <utility>

#include "absl/time/time.h"

namespace linnet::server {

// Admits some calls to an idle engine although their deadlines seem too short (probes). Latency
// estimates are learned from decoded calls, so without probes an estimate that is too high and
// rejects every call would never be corrected.
//
// A probe ends at its own deadline at the latest. One that is answered before costs nobody
// anything, so the next call may be one too. Each other one doubles the pause before the next: the
// estimate of an engine that was slow for a while is corrected soon after, and the probes of one
// that stays slow take a tenth of the time of an otherwise idle engine. Deterministic: time is
// passed in. Not thread-safe.
class ProbePolicy {
 public:
  ProbePolicy() = default;
  // One that begins with the longest pause, for probes that cost others something.
  static ProbePolicy AfterAPause() {
    ProbePolicy policy;
    policy.waits_ = true;
    policy.times_ = kMaxPause;
    return policy;
  }

  // `cost`: max time that the probe occupies the engine.
  bool Admit(absl::Time now, absl::Duration cost) {
    if (cost <= absl::ZeroDuration()) return false;
    if (now >= last_ && now - last_ < pause_) return false;
    last_ = now;
    pause_ = std::max(cost, kMinCost) * times_;
    times_ = std::min(2 * times_, kMaxPause);
    return !std::exchange(waits_, false);
  }
  // The last probe was answered before its deadline.
  void Answered() {
    pause_ = absl::ZeroDuration();
    times_ = 1;
  }

 private:
  // Max time from a probe to the next, in times of its cost.
  static constexpr int kMaxPause = 10;
  // A probe costs at least one step: a step cannot be interrupted.
  static constexpr absl::Duration kMinCost = absl::Milliseconds(10);

  absl::Time last_ = absl::InfinitePast();
  absl::Duration pause_ = absl::ZeroDuration();
  int times_ = 1;  // the pause after the next probe, in times of its cost
  bool waits_ = false;
};

}  // namespace linnet::server
