// Checks that the sanitizers of a build are active: each ends a process that commits its error.
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <memory>
#include <thread>

#ifdef LINNET_TSAN
// Debian's abseil is not instrumented. When two threads each destroy a copy of one Status, its
// reference count orders them and the last one destroys the payloads, but ThreadSanitizer cannot
// see that order.
extern "C" const char* __tsan_default_suppressions() {
  return "race:absl::debian3::Status::Unref\n"
         "race:absl::debian3::status_internal::Payload\n";
}
#endif

namespace {

// Opaque to the compiler, so that it neither warns about the errors nor optimises them away.
[[maybe_unused]] volatile int one = 1;
[[maybe_unused]] int* volatile lost = nullptr;

#ifdef __SANITIZE_ADDRESS__
TEST(SanitizerDeathTest, ReadBeyondAnArrayEndsTheProcess) {
  const std::unique_ptr<int[]> array(new int[4]());
  EXPECT_DEATH(std::exit(array[4 * one]), "AddressSanitizer: heap-buffer-overflow");
}

TEST(SanitizerDeathTest, UndefinedArithmeticEndsTheProcess) {
  EXPECT_DEATH(std::exit(std::numeric_limits<int>::max() + one), "signed integer overflow");
}

TEST(SanitizerDeathTest, LeakIsAnErrorAtTheEnd) {
  const auto leak = [] {
    lost = new int(1);
    lost = nullptr;
    std::exit(0);
  };
  EXPECT_EXIT(
      leak(), [](int status) { return status != 0; }, "LeakSanitizer: detected memory leaks");
}
#endif

#ifdef LINNET_TSAN
TEST(SanitizerDeathTest, DataRaceIsAnErrorAtTheEnd) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto race = [] {
    int shared = 0;
    std::thread other([&] { shared = one; });
    shared = 2;
    other.join();
    std::exit(0);
  };
  EXPECT_EXIT(
      race(), [](int status) { return status != 0; }, "ThreadSanitizer: data race");
}
#endif

}  // namespace
