#pragma once

#include <array>
#include <cstddef>

#include "absl/time/time.h"
#include "server/schedule/recent_ratio.h"

namespace linnet::server {

// The duration of a scheduler step as a function of its rows, learned from recorded steps.
//
// The estimate is a shape times a scale. The shape is the mean step duration for each power of two
// of rows, with linear interpolation between them, so that full steps do not change the estimate
// for small ones. It is at most the mean of steps of more rows, and proportional to that of steps
// of fewer: otherwise steps that were slow because the machine had no time would keep away all
// calls that need such steps, and so their correction. The scale is the ratio of recent durations
// to the shape: a machine that becomes slower or faster does so for steps of all sizes, including
// sizes not seen since. The half-life of the scale is two seconds of wall time, so that after a
// pause the next step determines it. Deterministic: time is passed in. Not thread-safe.
class StepCost {
 public:
  void Record(int rows, absl::Duration step, absl::Time now);

  // Zero before the first step. Below the smallest recorded number of rows the cost is that of this
  // number, above the largest it is proportional to the rows: both overestimate.
  absl::Duration Of(double rows) const;
  // True if a step of about so many rows, or of fewer, was recorded.
  bool Knows(int rows) const;

 private:
  struct Bucket {
    RecentRatio rows, seconds;  // means over its steps; seconds at scale 1
  };
  static size_t IndexOf(int rows);
  double Shape(double rows) const;

  static constexpr size_t kBuckets = 24;
  std::array<Bucket, kBuckets> buckets_;  // by bit width of the rows
  RecentRatio scale_;
  absl::Time last_ = absl::InfinitePast();
};

}  // namespace linnet::server
