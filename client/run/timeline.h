#pragma once

#include <vector>

#include "absl/time/time.h"
#include "client/run/record.h"

namespace linnet::client {

// Load and latency of a run over time, in intervals of equal length. The length doubles whenever
// there are more than kMaxIntervals. Not thread-safe.
class Timeline {
 public:
  static constexpr size_t kMaxIntervals = 240;

  struct Interval {
    int64_t due = 0;       // calls due in the interval, those never sent included
    int64_t answered = 0;  // answers that arrived in the interval
    int64_t failed = 0;    // calls that failed in the interval, without abandoned ones
    // From the due time, of the answered calls due in the interval; within 3 %.
    LatencyHistogram latency{5};
  };

  // Records nothing before `begin`.
  Timeline(absl::Duration begin, absl::Duration interval) : begin_(begin), length_(interval) {}

  void Add(const CallTimes& times, const CallOutcome& outcome);
  void AddNotSent(absl::Duration intended);

  absl::Duration begin() const { return begin_; }
  absl::Duration interval() const { return length_; }
  const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  Interval* At(absl::Duration time);  // null before the begin

  absl::Duration begin_;
  absl::Duration length_;
  std::vector<Interval> intervals_;
};

}  // namespace linnet::client
