// Tests of the parts that decide when an engine has stalled and when it is rebuilt.
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

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
  int ends = 0, failures = 0;
  Supervisor supervisor([&] { ++ends; }, absl::InfiniteDuration(), [&] { ++failures; });
  supervisor.SetGrace(absl::Seconds(5));
  FailedEngine engine;
  supervisor.Add(engine);
  supervisor.Remove(engine);
  ASSERT_TRUE(supervisor.failure().has_value());
  EXPECT_EQ(supervisor.failure()->model, "en-de");
  supervisor.Tick(kStart);
  EXPECT_EQ(ends, 0) << "the grace period begins with a tick";
  EXPECT_EQ(failures, 1);
  supervisor.Tick(At(5));
  EXPECT_EQ(ends, 1);
  EXPECT_EQ(failures, 1);
}

// An engine that counts how often it is looked at.
class WatchedEngine final : public Supervised {
 public:
  void EndIfStalled(MonotonicTime) override { ++looks; }
  void ForgiveGap(absl::Duration, MonotonicTime) override { ++looks; }
  std::optional<EngineFailure> failure() const override {
    ++looks;
    return std::nullopt;
  }

  mutable int looks = 0;
};

TEST(SupervisorTest, TicksCostNothingForIdleEngines) {
  Supervisor supervisor([] {}, absl::Seconds(3));
  std::vector<WatchedEngine> engines(50);
  for (WatchedEngine& engine : engines) {
    supervisor.Add(engine);
    supervisor.SetIdle(engine, true);
  }
  const auto looks = [&] {
    int sum = 0;
    for (const WatchedEngine& engine : engines) sum += engine.looks;
    return sum;
  };
  for (int second = 1; second <= 10; ++second) supervisor.Tick(At(100 * second));  // with gaps
  EXPECT_EQ(looks(), 0);
  supervisor.SetIdle(engines[7], false);
  supervisor.Tick(At(1001));
  EXPECT_GT(engines[7].looks, 0);
  EXPECT_EQ(looks(), engines[7].looks);
  for (WatchedEngine& engine : engines) supervisor.Remove(engine);
}

TEST(SupervisorTest, IdlePeriodEndsWithWorkOrARemoval) {
  Supervisor supervisor([] {});
  WatchedEngine first, second;
  supervisor.Add(first);
  EXPECT_EQ(supervisor.idle_period(), std::nullopt) << "it is being created";
  supervisor.SetIdle(first, true);
  const auto period = supervisor.idle_period();
  ASSERT_TRUE(period.has_value());
  supervisor.Add(second);
  EXPECT_EQ(supervisor.idle_period(), std::nullopt);
  supervisor.Remove(second);
  const auto next = supervisor.idle_period();
  ASSERT_TRUE(next.has_value());
  EXPECT_NE(next, period);
  supervisor.SetIdle(first, false);
  EXPECT_EQ(supervisor.idle_period(), std::nullopt);
  supervisor.SetIdle(first, true);
  EXPECT_TRUE(supervisor.idle_period().has_value());
  EXPECT_NE(supervisor.idle_period(), next);
  supervisor.Remove(first);
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
