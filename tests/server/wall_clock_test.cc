// Waits that end although the wall clock is set back. A binary of its own, in which the date can be
// changed.
#include <unistd.h>

#include <cstdlib>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/base/signals.h"
#include "tests/support/wall_clock.h"

namespace linnet::server {
namespace {

// linnet-server looks for a failed engine between two of these waits.
TEST(WallClockTest, WaitForAStopSignalTimesOut) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        alarm(20);
        Signals signals;
        signals.Serving([] {});
        test::WallClock::RunBackwards();
        const absl::Time before = absl::Now();
        if (absl::Now() >= before) std::_Exit(2);  // the date is not replaced
        std::_Exit(signals.WaitForStop(absl::Milliseconds(1)).has_value() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace linnet::server
