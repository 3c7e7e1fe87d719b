#pragma once

namespace linnet::test {

// The date that this process reads. Needs wall_clock.cc in the binary, which replaces the system's
// clock_gettime; the other clocks are real.
struct WallClock {
  // From now on every reading is an hour before the last one.
  static void RunBackwards();
};

}  // namespace linnet::test
