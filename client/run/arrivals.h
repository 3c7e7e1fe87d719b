#pragma once

#include <cstdint>
#include <random>

#include "absl/time/time.h"
#include "client/run/schedule.h"

namespace linnet::client {

enum class ArrivalKind {
  kPoisson,   // independent users: exponential gaps, so calls come in bursts
  kConstant,  // equal gaps at a constant rate
};

// The times at which an open loop sends its calls, independent of the answers. Pure: the same seed
// gives the same times.
class Arrivals {
 public:
  Arrivals(ArrivalKind kind, RateSchedule schedule, uint64_t seed);

  // The time of the next call since the start of the run, not decreasing; InfiniteDuration() after
  // the last call. With equal gaps the first call is at zero.
  absl::Duration Next();

 private:
  const ArrivalKind kind_;
  const RateSchedule schedule_;
  std::mt19937_64 random_;
  double calls_ = 0;  // time of the last call in a process with one call per unit of time
};

}  // namespace linnet::client
