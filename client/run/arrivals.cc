#include "client/run/arrivals.h"

#include <cmath>
#include <utility>

namespace linnet::client {

Arrivals::Arrivals(ArrivalKind kind, RateSchedule schedule, uint64_t seed)
    : kind_(kind), schedule_(std::move(schedule)), random_(seed) {}

absl::Duration Arrivals::Next() {
  if (kind_ == ArrivalKind::kConstant) return schedule_.DueTime(calls_++);
  // Inverse transform sampling; std::exponential_distribution differs between libraries.
  const double uniform = static_cast<double>(random_() >> 11) * 0x1p-53;  // [0, 1)
  calls_ -= std::log1p(-uniform);
  return schedule_.DueTime(calls_);
}

}  // namespace linnet::client
