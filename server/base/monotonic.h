#pragma once

#include <chrono>

#include "absl/time/time.h"

namespace linnet::server {

// A time of the clock that is never set. Supervision, timeouts and periodic work read it. Deadlines
// come as dates, so these and the times of sequences are absl::Time.
using MonotonicTime = std::chrono::steady_clock::time_point;

inline MonotonicTime MonotonicNow() { return std::chrono::steady_clock::now(); }

// Returns from + duration; MonotonicTime::max() if that overflows (an infinite duration).
inline MonotonicTime After(MonotonicTime from, absl::Duration duration) {
  const absl::Duration longest = absl::FromChrono(MonotonicTime::max() - from);
  if (duration >= longest) return MonotonicTime::max();
  return from + absl::ToChronoNanoseconds(duration);
}

inline absl::Duration Elapsed(MonotonicTime from, MonotonicTime to) {
  return absl::FromChrono(to - from);
}

}  // namespace linnet::server
