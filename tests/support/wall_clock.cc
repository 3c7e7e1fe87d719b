#include "tests/support/wall_clock.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace linnet::test {
namespace {

std::atomic<bool> runs_backwards = false;
std::atomic<time_t> hours_back = 0;

}  // namespace

void WallClock::RunBackwards() { runs_backwards = true; }

}  // namespace linnet::test

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  using namespace linnet::test;
  const auto status = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME && runs_backwards) time->tv_sec -= 3600 * ++hours_back;
  return status;
}
