// Tests of the parts that decide when an engine has stalled and when it is rebuilt.
#include <chrono>
#include <cstdint>
#include <optional>

#include "gtest/gtest.h"
#include "server/schedule/restart_policy.h"
#include "server/schedule/stall_detector.h"
#include "server/schedule/supervisor.h"

namespace linnet::server {
namespace {

const MonotonicTime kStart = MonotonicTime() + std::chrono::hours(1);

MonotonicTime At(int64_t seconds) { return After(kStart, absl::Seconds(seconds)); }

TEST(RestartPolicyTest, DelayIsZeroAtFirstAndThenDoubles) {
  RestartPolicy policy;
  EXPECT_EQ(policy.Failed(kStart), absl::ZeroDuration());
  for (int seconds : {1, 2, 4, 8, 16, 32, 60, 60})
    EXPECT_EQ(policy.Failed(kStart), absl::Seconds(seconds));
}

TEST(RestartPolicyTest, MinuteWithoutFailureResetsTheDelay) {
  RestartPolicy policy;
  policy.Failed(kStart);
  policy.Failed(kStart);  // rebuilt a second later
  EXPECT_EQ(policy.Failed(At(61)), absl::Seconds(2));
  EXPECT_EQ(policy.Failed(At(63 + 61)), absl::ZeroDuration());
}

TEST(RestartPolicyTest, GivesUpAfterConsecutiveRebuildsWithoutAStep) {
  RestartPolicy policy(3);
  for (int i = 0; i < 2; ++i) policy.Rebuilding();
  EXPECT_FALSE(policy.give_up());
  policy.Stepped();
  for (int i = 0; i < 2; ++i) policy.Rebuilding();
  EXPECT_FALSE(policy.give_up());
  policy.Rebuilding();
  EXPECT_TRUE(policy.give_up());
}

TEST(StallDetectorTest, CallStallsAtItsTimeoutAndThenThrows) {
  StallDetector detector;
  bool returned = false, thrown = false;
  EXPECT_FALSE(detector.DeclareStalled(MonotonicTime::max())) << "no call is in progress";
  try {
    detector.Watch(absl::Seconds(10), [&] {
      EXPECT_FALSE(detector.DeclareStalled(After(MonotonicNow(), absl::Seconds(9))));
      EXPECT_FALSE(detector.stalled());
      EXPECT_TRUE(detector.DeclareStalled(After(MonotonicNow(), absl::Seconds(10))));
      EXPECT_FALSE(detector.DeclareStalled(After(MonotonicNow(), absl::Seconds(11)))) << "once";
      return 0;
    });
    returned = true;
  } catch (const StalledCall&) {
    thrown = true;
  }
  EXPECT_FALSE(returned);
  EXPECT_TRUE(thrown);
  EXPECT_TRUE(detector.stalled());
}

// An engine that has failed for good.
class FailedEngine final : public Supervised {
 public:
  void EndIfStalled(MonotonicTime) override {}
  void ForgiveGap(absl::Duration, MonotonicTime) override {}
  std::optional<EngineFailure> failure() const override {
    return EngineFailure{"en-de", absl::InternalError("the device is lost"), {}};
  }
};

TEST(SupervisorTest, KeepsTheFailureOfARemovedEngine) {
  int ends = 0;
  Supervisor supervisor([&] { ++ends; });
  supervisor.SetGrace(absl::Seconds(5));
  FailedEngine engine;
  supervisor.Add(engine);
  supervisor.Remove(engine);
  ASSERT_TRUE(supervisor.failure().has_value());
  EXPECT_EQ(supervisor.failure()->model, "en-de");
  supervisor.Tick(kStart);
  EXPECT_EQ(ends, 0) << "the grace period begins with a tick";
  supervisor.Tick(At(5));
  EXPECT_EQ(ends, 1);
}

// An engine in a call that began at kStart and may take ten seconds.
class EngineInCall final : public Supervised {
 public:
  void EndIfStalled(MonotonicTime now) override {
    stalled |= Elapsed(kStart, now) - forgiven >= absl::Seconds(10);
  }
  void ForgiveGap(absl::Duration gap, MonotonicTime) override { forgiven += gap; }
  std::optional<EngineFailure> failure() const override { return std::nullopt; }

  absl::Duration forgiven;
  bool stalled = false;
};

TEST(SupervisorTest, ForgivesTheTimeInWhichTheProcessDidNotRun) {
  Supervisor supervisor([] {}, absl::Seconds(3));
  EngineInCall engine;
  supervisor.Add(engine);
  supervisor.Tick(At(1));
  supervisor.Tick(At(4));
  EXPECT_EQ(engine.forgiven, absl::ZeroDuration()) << "a busy machine";
  supervisor.Tick(At(3600));
  EXPECT_EQ(engine.forgiven, absl::Seconds(3596));
  EXPECT_FALSE(engine.stalled);
  for (int second = 1; second <= 6; ++second) supervisor.Tick(At(3600 + second));
  EXPECT_TRUE(engine.stalled) << "the rest of its time";
  supervisor.Remove(engine);
}

TEST(StallDetectorTest, ForgivenGapDoesNotCount) {
  MonotonicTime now = kStart;
  StallDetector detector([&now] { return now; });
  detector.Watch(absl::Seconds(10), [&] {
    detector.Forgive(absl::Seconds(100), At(101));
    EXPECT_EQ(detector.in_call_for(At(101)), absl::Seconds(1));
    EXPECT_FALSE(detector.DeclareStalled(At(109)));
    return 0;
  });
  now = At(150);
  detector.Watch(absl::Seconds(10), [&] {
    detector.Forgive(absl::Seconds(100), At(151));  // it began within the gap
    EXPECT_EQ(detector.in_call_for(At(151)), absl::ZeroDuration());
    EXPECT_FALSE(detector.DeclareStalled(At(160)));
    return 0;
  });
}

TEST(StallDetectorTest, InfiniteTimeoutNeverStalls) {
  StallDetector detector;
  detector.Watch(absl::InfiniteDuration(), [&] {
    EXPECT_FALSE(detector.DeclareStalled(MonotonicTime::max()));
    return 0;
  });
}

}  // namespace
}  // namespace linnet::server
