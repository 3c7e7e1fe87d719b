#pragma once

#include <algorithm>
#include <cmath>

#include "absl/time/time.h"

namespace linnet::server {

// What an estimate of time is to be multiplied by, so that a share of what is estimated so (99 in a
// hundred) takes no longer; learned from what it took.
//
// A running quantile of actual over estimated, by stochastic approximation (Robbins and Monro 1951)
// in logarithms: each that took longer raises the ratio by a tenth, each of the others lowers it by
// a thousandth, so that it stands still where one in a hundred takes longer. It follows a server
// that becomes slower within some calls, and one that becomes faster within some hundred. Plain.
class Margin {
 public:
  explicit Margin(double share = 0.99) : share_(share) {}

  double ratio() const { return std::exp(log_); }

  // It came to its end.
  void Took(absl::Duration estimate, absl::Duration actual) {
    Learn(estimate, actual > estimate * ratio());
  }
  // It was cut off after so long, by its deadline or by its caller, who mostly goes by the same: so
  // it would have taken longer than that. That says something only once it is as much as was to be
  // expected.
  void CutOff(absl::Duration estimate, absl::Duration after) {
    if (after >= estimate * ratio()) Learn(estimate, true);
  }

 private:
  void Learn(absl::Duration estimate, bool longer) {
    if (estimate < kLeast) return;
    log_ = std::clamp(log_ + kRate * (longer ? share_ : share_ - 1), 0.0, std::log(kMost));
  }

  static constexpr double kRate = 0.1;
  // Beyond that the estimate is not wrong, but something else is.
  static constexpr double kMost = 4;
  // What is shorter ends with the step in which it ends: there the ratio says nothing.
  static constexpr absl::Duration kLeast = absl::Milliseconds(50);

  double share_;
  double log_ = 0;  // never below: an estimate is not made shorter
};

}  // namespace linnet::server
