#pragma once

#include <cstdint>

#include "model/runtime/engine.h"

namespace linnet::server {

// The size of a call, as an engine sees it.
struct CallSize {
  int64_t tokens = 0;   // of work: the sum over all segments of (source + max target) x rows
  int64_t longest = 0;  // source and max target tokens of its longest segment
  double rows = 0;      // of all segments
  // The sums of source x rows and of (source + min target) x rows; 0 if they are not known.
  int64_t source = 0;
  int64_t least = 0;

  // Counts one more segment.
  void Add(const model::SequenceInput& input);
};

}  // namespace linnet::server
