#include "client/load/arrivals.h"

#include <cmath>

namespace linnet::client {

Arrivals::Arrivals(ArrivalKind kind, double calls_per_second, uint64_t seed)
    : kind_(kind), calls_per_second_(calls_per_second), random_(seed) {}

absl::Duration Arrivals::Next() {
  if (kind_ == ArrivalKind::kConstant) {
    return absl::Seconds(static_cast<double>(count_++) / calls_per_second_);
  }
  // The inverse of the distribution; std::exponential_distribution differs between libraries.
  const double uniform = static_cast<double>(random_() >> 11) * 0x1p-53;  // [0, 1)
  seconds_ -= std::log1p(-uniform) / calls_per_second_;
  return absl::Seconds(seconds_);
}

}  // namespace linnet::client
