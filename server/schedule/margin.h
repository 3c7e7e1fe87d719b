#pragma once

#include <algorithm>
#include <cmath>

#include "absl/time/time.h"

namespace linnet::server {

// What an estimate of time is to be multiplied by, so that 99 of 100 things that are estimated so
// take no longer; learned from what they took.
//
// A running quantile of actual over estimated, by stochastic approximation (Robbins and Monro 1951)
// in logarithms: each that took longer raises the ratio by a tenth, each of the others lowers it by
// a thousandth, so that it stands still where one in a hundred takes longer. It follows a server
// that becomes slower within some calls, and one that becomes faster within some hundred. Plain.
class Margin {
 public:
  double ratio() const { return std::exp(log_); }

  // `in_time`: it came to its end. Otherwise it was cut off, and took longer than was expected.
  void Took(absl::Duration estimate, absl::Duration actual, bool in_time) {
    if (estimate < kLeast) return;
    const bool longer = !in_time || actual > estimate * ratio();
    log_ = std::clamp(log_ + kRate * (longer ? kShare : kShare - 1), 0.0, std::log(kMost));
  }

 private:
  static constexpr double kShare = 0.99;
  static constexpr double kRate = 0.1;
  // Beyond that the estimate is not wrong, but something else is.
  static constexpr double kMost = 4;
  // What is shorter ends with the step in which it ends: there the ratio says nothing.
  static constexpr absl::Duration kLeast = absl::Milliseconds(50);

  double log_ = 0;  // never below: an estimate is not made shorter
};

}  // namespace linnet::server
