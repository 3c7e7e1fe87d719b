// The rate of an open loop over time.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace linnet::client {

// A part of a schedule in which the rate changes linearly from `from` to `to` calls per second.
struct RatePart {
  absl::Duration length;
  double from = 0;
  double to = 0;
};

class RateSchedule {
 public:
  // A constant rate without end.
  static RateSchedule Constant(double calls_per_second);

  // Parts in turn, each RATE:TIME (a step) or FROM..TO:TIME (a ramp):
  // "10:30s,20:30s", "0..50:1m,50:30s". A rate of 0 is a pause.
  // INVALID_ARGUMENT if the text has another form.
  static absl::StatusOr<RateSchedule> Parse(absl::string_view text);

  // This schedule, preceded by `length` at its initial rate.
  RateSchedule After(absl::Duration length) const;

  // The largest t at which the integral of the rate from 0 to t is `calls`, which may be
  // fractional: a call that falls on a pause is due at its end. It maps the times of a process with
  // one call per unit of time to this schedule; a Poisson process stays one (Çinlar, Introduction
  // to Stochastic Processes, 1975, section 4.7). InfiniteDuration() if the schedule has fewer
  // calls.
  absl::Duration DueTime(double calls) const;

  // Mean calls per second over the first `length`, which must not be zero.
  double MeanRate(absl::Duration length) const;

  // InfiniteDuration() for a constant rate.
  absl::Duration length() const;
  const std::vector<RatePart>& parts() const { return parts_; }

 private:
  std::vector<RatePart> parts_;
};

}  // namespace linnet::client
