#pragma once

#include <cstdint>

namespace linnet::test {

// Counts the memory allocated by operator new in this process, and injects failures. Needs
// allocations.cc in the binary, which replaces operator new.
struct Allocations {
  static int64_t live_bytes();  // including the allocator's overhead per block
  static int64_t peak_bytes();  // since ResetPeak
  static void ResetPeak();

  // Makes the n-th allocation from now fail, counted over the threads that called MayFail; 0: none.
  static void FailNth(int64_t n);
  static bool failed();  // that allocation has failed
  static void MayFail(bool on_this_thread);
};

}  // namespace linnet::test
