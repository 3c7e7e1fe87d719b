#pragma once

#include <array>

#include "absl/time/time.h"
#include "server/schedule/recent_ratio.h"

namespace linnet::server {

// What a scheduler step costs, as a function of the rows in it; learned from the steps made.
//
// A shape times a scale. The shape is a mean for each power of two of rows, with straight lines
// between them, so that a batch of full steps does not change what is known of small ones. The
// scale is how long steps took lately beside their shape: a machine that has become slower or
// faster is so for steps of all sizes, those too that were not made since. Half of the scale is of
// the last two seconds, busy or not: what was learned long ago weighs nothing against the next
// step. Plain, time is passed in.
class StepCost {
 public:
  void Record(int rows, absl::Duration step, absl::Time now);

  // Zero while nothing is known. Below the fewest rows of which something is known the cost is
  // theirs, above the most it grows with the rows: both ways rather too much than too little.
  absl::Duration Of(double rows) const;

 private:
  struct Bucket {
    RecentRatio rows, seconds;  // means of its steps, the seconds at scale 1
  };
  double Shape(double rows) const;

  std::array<Bucket, 24> buckets_;  // by bit width of the rows
  RecentRatio scale_;
  absl::Time last_ = absl::InfinitePast();
};

}  // namespace linnet::server
