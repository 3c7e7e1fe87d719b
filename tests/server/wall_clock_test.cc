// Waits that end although the wall clock is set back. A binary of its own, in which the date can be
// changed.
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/schedule/ticker.h"
#include "tests/support/wall_clock.h"

namespace linnet::server {
namespace {

// The supervisor looks for a stalled engine at each tick.
TEST(WallClockTest, TickerTicksAgain) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        alarm(20);
        test::WallClock::RunBackwards();
        const absl::Time before = absl::Now();
        if (absl::Now() >= before) std::_Exit(2);  // the date is not replaced
        std::atomic<int> ticks = 0;
        Ticker ticker(absl::Milliseconds(1), [&] {
          if (++ticks == 3) std::_Exit(0);
        });
        while (true) pause();
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace linnet::server
