#pragma once

#include <cstdint>

namespace linnet::test {

// What operator new has given out in this process, and failures of it. Needs allocations.cc in the
// binary, which replaces operator new.
struct Allocations {
  static int64_t live_bytes();  // with what the allocator adds to each
  static int64_t peak_bytes();  // since ResetPeak
  static void ResetPeak();

  // Makes the n-th allocation from now fail, counted over the threads that MayFail; 0: none.
  static void FailNth(int64_t n);
  static bool failed();  // it has
  static void MayFail(bool on_this_thread);
};

}  // namespace linnet::test
