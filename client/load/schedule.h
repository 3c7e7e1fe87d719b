// How many calls a second an open loop offers, over time.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace linnet::client {

// The rate goes from `from` to `to` calls a second, in a straight line.
struct RatePart {
  absl::Duration length;
  double from = 0;
  double to = 0;
};

class RateSchedule {
 public:
  // For ever.
  static RateSchedule Constant(double calls_per_second);

  // Parts in turn, each RATE:TIME (a step) or FROM..TO:TIME (a ramp):
  // "10:30s,20:30s", "0..50:1m,50:30s". A rate of 0 is a pause.
  // INVALID_ARGUMENT if the text says something else.
  static absl::StatusOr<RateSchedule> Parse(absl::string_view text);

  // The same, after `length` at the rate at which it begins.
  RateSchedule After(absl::Duration length) const;

  // When call number `calls` is due, counted in fractions: the least t at which
  // the integral of the rate from 0 to t is `calls`. A process with one call
  // per unit becomes one of this schedule when its times go through here; a
  // Poisson process stays one (Çinlar, Introduction to Stochastic Processes,
  // 1975, section 4.7). InfiniteDuration() if the schedule has fewer calls.
  absl::Duration TimeOf(double calls) const;

  // Calls a second, on the mean over its first `length`, which is not zero.
  double MeanRate(absl::Duration length) const;

  // InfiniteDuration() of a constant rate.
  absl::Duration length() const;
  const std::vector<RatePart>& parts() const { return parts_; }

 private:
  std::vector<RatePart> parts_;
};

}  // namespace linnet::client
