#pragma once

#include <algorithm>
#include <cmath>

#include "absl/time/time.h"

namespace linnet::server {

// The factor by which a latency estimate is multiplied so that a share of the calls (99 %) takes no
// longer than the product. Learned from the actual times of earlier calls.
//
// It is the running quantile of actual / estimated time by stochastic approximation (Robbins and
// Monro 1951) on its logarithm: each call that takes longer than predicted raises the factor by a
// tenth, each other call lowers it by a thousandth. The two balance where one call in a hundred
// takes longer. It adapts to a slower server within a few calls, to a faster one within hundreds.
//
// After ten seconds without a finished call it decays towards 1: otherwise a factor that rejects
// every call would never change. Deterministic: time is passed in. Not thread-safe.
class SafetyFactor {
 public:
  explicit SafetyFactor(double share = 0.99) : share_(share) {}

  double value(absl::Time now) const { return std::exp(Log(now)); }

  void RecordCompletion(absl::Duration estimate, absl::Duration actual, absl::Time now) {
    Learn(estimate, actual > estimate * value(now), now);
  }
  // Records a call that its deadline or a cancellation ended after `after`. It would have taken
  // longer, but that counts only if `after` has reached the prediction.
  void RecordTimeout(absl::Duration estimate, absl::Duration after, absl::Time now) {
    if (after >= estimate * value(now)) Learn(estimate, true, now);
  }

 private:
  double Log(absl::Time now) const {
    const absl::Duration idle = now - last_ - kFresh;
    if (idle <= absl::ZeroDuration()) return log_;
    return log_ * std::exp2(-absl::FDivDuration(idle, kHalfLife));
  }
  void Learn(absl::Duration estimate, bool longer, absl::Time now) {
    if (estimate < kMinEstimate) return;
    log_ = std::clamp(Log(now) + kRate * (longer ? share_ : share_ - 1), 0.0, std::log(kMax));
    last_ = now;
  }

  static constexpr double kRate = 0.1;
  // Beyond this the cause is not the estimate.
  static constexpr double kMax = 4;
  // The time of a shorter call is rounded up to whole steps, so its ratio is mostly noise.
  static constexpr absl::Duration kMinEstimate = absl::Milliseconds(50);
  static constexpr absl::Duration kFresh = absl::Seconds(10);
  static constexpr absl::Duration kHalfLife = absl::Seconds(30);

  double share_;
  double log_ = 0;                            // >= 0: the factor never shortens an estimate
  absl::Time last_ = absl::InfiniteFuture();  // last recorded call; infinite before the first
};

}  // namespace linnet::server
