#pragma once

#include <cstdint>
#include <random>

#include "absl/time/time.h"
#include "client/load/schedule.h"

namespace linnet::client {

enum class ArrivalKind {
  kPoisson,   // users who know nothing of each other: gaps are exponential, so
              // calls come in clumps
  kConstant,  // equal gaps at a constant rate
};

// When the calls of an open loop shall be sent, whatever becomes of those
// before. Pure: the same seed gives the same times.
class Arrivals {
 public:
  Arrivals(ArrivalKind kind, RateSchedule schedule, uint64_t seed);

  // The time of the next call from the start of the run, never before the last
  // one; InfiniteDuration() if none is to come. Equal gaps begin at zero.
  absl::Duration Next();

 private:
  const ArrivalKind kind_;
  const RateSchedule schedule_;
  std::mt19937_64 random_;
  double calls_ = 0;  // of a process with one call per unit of time
};

}  // namespace linnet::client
