// That the sanitizers of a build are awake: what each is there for ends a process with an error.
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <memory>
#include <thread>

#ifdef __SANITIZE_THREAD__
// Debian's abseil is not instrumented: where two threads each drop a copy of one Status, its
// reference count orders them, and ThreadSanitizer cannot see that. It is the last of them that
// destroys the payloads.
extern "C" const char* __tsan_default_suppressions() {
  return "race:absl::debian3::Status::Unref\n"
         "race:absl::debian3::status_internal::Payload\n";
}
#endif

namespace {

// The compiler cannot see through these, so it neither warns nor leaves out what is wrong.
[[maybe_unused]] volatile int one = 1;
[[maybe_unused]] int* volatile lost = nullptr;

#ifdef __SANITIZE_ADDRESS__
TEST(SanitizerDeathTest, AReadBehindAnArrayEndsTheProcess) {
  const std::unique_ptr<int[]> array(new int[4]());
  EXPECT_DEATH(std::exit(array[4 * one]), "AddressSanitizer: heap-buffer-overflow");
}

TEST(SanitizerDeathTest, UndefinedArithmeticEndsTheProcess) {
  EXPECT_DEATH(std::exit(std::numeric_limits<int>::max() + one), "signed integer overflow");
}

TEST(SanitizerDeathTest, ALeakIsAnErrorAtTheEnd) {
  const auto leak = [] {
    lost = new int(1);
    lost = nullptr;
    std::exit(0);
  };
  EXPECT_EXIT(
      leak(), [](int status) { return status != 0; }, "LeakSanitizer: detected memory leaks");
}
#endif

#ifdef __SANITIZE_THREAD__
TEST(SanitizerDeathTest, ADataRaceIsAnErrorAtTheEnd) {
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
