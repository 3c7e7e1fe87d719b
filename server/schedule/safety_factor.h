#pragma once

#include <algorithm>
#include <cmath>

#include "absl/time/time.h"

namespace linnet::server {

// What a latency estimate is multiplied by, so that a share of the calls with such estimates (99 in
// a hundred) takes no longer; learned from how long they took.
//
// A running quantile of actual over estimated, by stochastic approximation (Robbins and Monro 1951)
// in logarithms: each call that took longer raises the factor by a tenth, each of the others lowers
// it by a thousandth, so that it stands still where one in a hundred takes longer. It follows a
// server that becomes slower within some calls, and one that becomes faster within some hundred.
//
// While no call ends there is no evidence for it, and after ten seconds it decays: otherwise a
// factor that refuses every call would stay for ever. Plain, time is passed in.
class SafetyFactor {
 public:
  explicit SafetyFactor(double share = 0.99) : share_(share) {}

  double value(absl::Time now) const { return std::exp(Log(now)); }

  void RecordCompletion(absl::Duration estimate, absl::Duration actual, absl::Time now) {
    Learn(estimate, actual > estimate * value(now), now);
  }
  // It was ended after so long by its deadline or by its caller, who mostly goes by the same: it
  // would have taken longer than that. That is evidence only once it is as much as was expected.
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
  // Beyond that the estimate is not wrong, but something else is.
  static constexpr double kMax = 4;
  // A shorter call ends with the step in which it ends: there the ratio says nothing.
  static constexpr absl::Duration kMinEstimate = absl::Milliseconds(50);
  static constexpr absl::Duration kFresh = absl::Seconds(10);
  static constexpr absl::Duration kHalfLife = absl::Seconds(30);

  double share_;
  double log_ = 0;                            // never below: an estimate is not made shorter
  absl::Time last_ = absl::InfiniteFuture();  // evidence; in the future while there is none
};

}  // namespace linnet::server
