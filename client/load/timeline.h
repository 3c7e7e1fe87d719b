#pragma once

#include <vector>

#include "absl/time/time.h"
#include "client/load/record.h"

namespace linnet::client {

// A run in intervals of equal length: how the load and the latency went over
// time. Intervals double as often as it takes to keep them few. Not
// thread-safe.
class Timeline {
 public:
  static constexpr size_t kMaxIntervals = 240;

  struct Interval {
    int64_t due = 0;       // calls that should have been sent in it, those never sent included
    int64_t answered = 0;  // answers that came in it
    int64_t failed = 0;    // calls that ended otherwise in it, but for those that
                           // left on purpose
    // From the time due, of the calls due in it that were answered; within 3 %.
    LatencyHistogram latency{5};
  };

  // Before `begin` nothing is recorded.
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
