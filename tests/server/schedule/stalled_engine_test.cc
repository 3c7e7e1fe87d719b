// Engines that stall: their sequences end at once, and then the process.
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "server/base/errors.h"
#include "tests/server/schedule/engine_failures_fixture.h"
#include "tests/support/notification.h"

namespace linnet::server {
namespace {

using test::EchoEngine;
using test::Notification;
using test::Waited;
using ::testing::ElementsAre;

// Engines that block in their first call of one kind until the test releases them.
class StalledEngineTest : public EngineFailures {
 protected:
  ~StalledEngineTest() override {
    go_on.Open();
    scheduler.reset();
  }
  void ThenStallInAStep() {
    Then({.rows = 1, .on_step = [&] {
            inside.Open();
            go_on.Pass();
          }});
  }

  Notification inside, go_on;
};

TEST_F(StalledEngineTest, EndsSequencesOnceAndRefusesNewOnes) {
  std::atomic<int> failed = 0;
  observer = [&](const StepReport& report, absl::Duration) { failed += report.failed; };
  ThenStallInAStep();
  Start();
  Waited running, waiting, late;
  ASSERT_THAT(Submit({5, 6}, running, "the-culprit"), IsOk());
  inside.Pass();
  ASSERT_THAT(Submit({7}, waiting, "innocent"), IsOk());
  TickAfter(0.9);
  EXPECT_EQ(state(), EngineHealth::State::kUp) << "the timeout has not passed";
  TickAfter(1.1);
  // A running sequence may be the cause and must not be retried; a waiting one may be retried
  // elsewhere.
  EXPECT_EQ(running.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(RetryDelay(running.status()), absl::InfiniteDuration());
  EXPECT_EQ(ErrorReason(waiting.status()), "ENGINE_DOWN");
  EXPECT_EQ(ErrorReason(Submit({8}, late)), "ENGINE_DOWN");
  EXPECT_EQ(state(), EngineHealth::State::kFailed);
  ASSERT_TRUE(supervisor.failure().has_value());
  EXPECT_THAT(supervisor.failure()->request_ids, ElementsAre("the-culprit"));
  TickAfter(1.2);
  go_on.Open();
  scheduler.reset();  // the call returns at last and must end nothing twice
  EXPECT_EQ(failed, 2);
}

TEST_F(StalledEngineTest, CallsAfterAnIdleTimeAreWatched) {
  ThenStallInAStep();
  Start();
  UntilIdle();
  Waited waited;
  ASSERT_THAT(Submit({5, 6}, waited), IsOk());
  inside.Pass();
  EXPECT_EQ(supervisor.idle_period(), std::nullopt);
  TickAfter(1.1);
  EXPECT_EQ(waited.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(supervisor.idle_period(), std::nullopt) << "its failure is still to be shown";
}

TEST_F(StalledEngineTest, EndsSequencesIfTheEncoderStalls) {
  Then({.on_add = [&] {
    inside.Open();
    go_on.Pass();
  }});
  Start();
  Waited waited;
  ASSERT_THAT(Submit({5, 6}, waited, "the-culprit"), IsOk());
  inside.Pass();
  TickAfter(1.1);
  EXPECT_EQ(waited.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(supervisor.failure()->request_ids, ElementsAre("the-culprit"));
}

// Records the thread of its destructor.
class RecordedEngine : public EchoEngine {
 public:
  RecordedEngine(Options options, std::atomic<std::thread::id>& destroyed_on)
      : EchoEngine(std::move(options)), destroyed_on_(destroyed_on) {}
  ~RecordedEngine() override { destroyed_on_ = std::this_thread::get_id(); }

 private:
  std::atomic<std::thread::id>& destroyed_on_;
};

// The supervisor's thread watches all engines: a log whose disk is slow or a destructor that waits
// for the device must not keep it from the others.
TEST_F(StalledEngineTest, SupervisorWritesNothingAndDestroysNoEngine) {
  std::atomic<std::thread::id> destroyed_on{};
  engines_.push_back([&] {
    EchoEngine::Options options{.rows = 1};
    options.on_step = [&] {
      inside.Open();
      go_on.Pass();
    };
    return std::make_unique<RecordedEngine>(std::move(options), destroyed_on);
  });
  Start();
  Waited running, waiting;
  ASSERT_THAT(Submit({5, 6}, running, "the-culprit"), IsOk());
  inside.Pass();
  ASSERT_THAT(Submit({7}, waiting), IsOk());
  bool shown = false;  // the answer to a request for a snapshot is sent and logged
  scheduler->ShowBatch(10, [&](const BatchSnapshot&) { shown = true; });
  testing::internal::CaptureStderr();
  TickAfter(1.1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_FALSE(shown);
  EXPECT_FALSE(running.status().ok());
  scheduler->Maintain(MonotonicNow());
  EXPECT_TRUE(shown) << "even if the call has taken less than two seconds";
  EXPECT_EQ(destroyed_on.load(), std::thread::id()) << "it is kept while its call may return";
  go_on.Open();
  scheduler.reset();
  EXPECT_NE(destroyed_on.load(), std::thread::id());
  EXPECT_NE(destroyed_on.load(), std::this_thread::get_id());
}

TEST_F(StalledEngineTest, DrainDoesNotWaitForAStalledEngine) {
  ThenStallInAStep();
  Start();
  Waited waited;
  ASSERT_THAT(Submit({5}, waited), IsOk());
  inside.Pass();
  TickAfter(1.1);
  scheduler->Drain(MonotonicTime::max());
  EXPECT_FALSE(waited.status().ok());
}

TEST_F(StalledEngineTest, IdleEngineDoesNotStall) {
  Start();
  Waited waited;
  ASSERT_THAT(Submit({5}, waited), IsOk());
  EXPECT_THAT(waited.status(), IsOk());
  scheduler->Drain(MonotonicTime::max());
  TickAfter(1000);
  EXPECT_EQ(state(), EngineHealth::State::kUp);
}

TEST_F(StalledEngineTest, EndsTheProcessAfterTheGracePeriod) {
  ThenStallInAStep();
  Start();
  supervisor.SetGrace(absl::Hours(3));
  Waited waited;
  ASSERT_THAT(Submit({5}, waited), IsOk());
  inside.Pass();
  const MonotonicTime now = MonotonicNow();
  supervisor.Tick(After(now, absl::Hours(2)));
  EXPECT_TRUE(supervisor.failure().has_value());
  supervisor.Tick(After(now, absl::Hours(4.9)));
  EXPECT_EQ(ends, 0);
  supervisor.Tick(After(now, absl::Hours(5)));
  EXPECT_EQ(ends, 1);
}

TEST_F(StalledEngineTest, SnapshotReportsHowLongTheCallTakes) {
  ThenStallInAStep();
  Start();
  Waited waited;
  ASSERT_THAT(Submit({5}, waited), IsOk());
  inside.Pass();
  Notification shown;
  absl::Duration in_call_for;
  scheduler->ShowBatch(10, [&](const BatchSnapshot& snapshot) {
    in_call_for = snapshot.in_call_for;
    shown.Open();
  });
  scheduler->Maintain(After(MonotonicNow(), absl::Seconds(3)));
  shown.Pass();
  EXPECT_GE(in_call_for, absl::Seconds(3));
  go_on.Open();
  EXPECT_THAT(waited.status(), IsOk());
}

}  // namespace
}  // namespace linnet::server
