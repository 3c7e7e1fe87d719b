#pragma once

#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace linnet::client {

enum class ArrivalKind {
  kPoisson,   // users who know nothing of each other: gaps are exponential, so calls come in clumps
  kConstant,  // one call every 1/rate
};

// When the calls of an open loop shall be sent, whatever becomes of those before. Pure: the same
// seed gives the same times.
class Arrivals {
 public:
  // calls_per_second > 0
  Arrivals(ArrivalKind kind, double calls_per_second, uint64_t seed);

  // The time of the next call from the start of the run, never before the last one. A constant rate
  // begins at zero.
  absl::Duration Next();

 private:
  const ArrivalKind kind_;
  const double calls_per_second_;
  std::mt19937_64 random_;
  int64_t count_ = 0;
  double seconds_ = 0;
};

}  // namespace linnet::client
