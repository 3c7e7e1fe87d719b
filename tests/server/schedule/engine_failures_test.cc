// Engines that throw, run out of memory, return NaN, cannot be rebuilt, lose their device or stall:
// their sequences end at once, and the health of the scheduler shows the failure.
#include <atomic>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "server/base/errors.h"
#include "server/base/monotonic.h"
#include "server/schedule/scheduler.h"
#include "tests/support/echo_engine.h"
#include "tests/support/notification.h"
#include "tests/support/recording_sink.h"
#include "tests/support/status_matchers.h"
#include "tests/support/waited_sink.h"

namespace linnet::server {
namespace {

using test::EchoEngine;
using test::Notification;
using test::Outcome;
using test::Waited;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);

// A scheduler whose engines come from a list that the test fills, with failures to build one. The
// stall timeout is an hour, the load timeout two hours, and two failed rebuilds are allowed.
class EngineFailuresTest : public ::testing::Test {
 protected:
  using Make = std::function<absl::StatusOr<std::unique_ptr<model::Engine>>()>;

  void Then(EchoEngine::Options options) {
    engines_.push_back([options] { return std::make_unique<EchoEngine>(options); });
  }
  void ThenFail(const char* why) {
    engines_.push_back([why] { return absl::InternalError(why); });
  }
  void Start(BatcherOptions options = {}) {
    auto started = Scheduler::Start(
        [this]() -> absl::StatusOr<std::unique_ptr<model::Engine>> {
          if (engines_.empty()) return std::make_unique<EchoEngine>();
          const Make make = engines_.front();
          engines_.pop_front();
          return make();
        },
        options, observer,
        {.stall_timeout = absl::Hours(1),
         .load_timeout = absl::Hours(2),
         .max_failed_rebuilds = 2,
         .supervisor = &supervisor},
        "en-de");
    ASSERT_THAT(started, IsOk());
    scheduler = *std::move(started);
  }
  absl::Status Submit(std::vector<model::TokenId> words, Waited& waited,
                      const std::string& request_id = "") {
    std::vector<std::unique_ptr<Sequence>> one;
    one.push_back(test::Say(std::move(words), waited));
    one.front()->caller.request_id = request_id;
    return scheduler->Submit(one);
  }
  // Ticks the supervisor as if so many hours had passed.
  void TickAfter(double hours) { supervisor.Tick(After(MonotonicNow(), absl::Hours(hours))); }
  EngineHealth::State state() { return scheduler->health().state; }
  void UntilUp() {
    while (scheduler->health().state != EngineHealth::State::kUp) absl::SleepFor(kShort);
  }

  void UntilRestarted() {
    while (scheduler->health().restarts == 0) absl::SleepFor(kShort);
  }

  static constexpr absl::Duration kShort = absl::Milliseconds(1);
  std::deque<Make> engines_;
  Scheduler::Observer observer;
  std::atomic<int> ends = 0;  // how often the supervisor asked to end the process
  Supervisor supervisor{[this] { ++ends; }};
  std::unique_ptr<Scheduler> scheduler;
};

TEST_F(EngineFailuresTest, RebuildsAnEngineThatThrowsInAStep) {
  Notification both;
  Then({.rows = 1, .on_step = [&] {
          both.Pass();
          throw std::runtime_error("a kernel failed");
        }});
  Start();
  Waited running, waiting;
  ASSERT_THAT(Submit({5, 6}, running), IsOk());
  ASSERT_THAT(Submit({7}, waiting), IsOk());
  both.Open();
  EXPECT_THAT(running.status(), StatusIs(absl::StatusCode::kInternal, HasSubstr("kernel failed")));
  EXPECT_EQ(ErrorReason(waiting.status()), "ENGINE_DOWN");
  UntilRestarted();
  Waited again;
  ASSERT_THAT(Submit({7}, again), IsOk());
  EXPECT_THAT(again.status(), IsOk());
  EXPECT_THAT(again.outcome.tokens(), ElementsAre(7, 2));
  EXPECT_EQ(scheduler->health().restarts, 1);
}

TEST_F(EngineFailuresTest, RebuildsAnEngineThatThrowsWhenItEncodes) {
  Then({.on_add = [] { throw 7; }});
  Start();
  Waited first, second;
  ASSERT_THAT(Submit({5}, first), IsOk());
  EXPECT_THAT(first.status(), StatusIs(absl::StatusCode::kInternal, HasSubstr("threw")));
  UntilRestarted();
  ASSERT_THAT(Submit({6}, second), IsOk());
  EXPECT_THAT(second.status(), IsOk());
  EXPECT_EQ(scheduler->health().restarts, 1);
}

// The sequences that the failed call was adding are not among those of the step after it.
TEST_F(EngineFailuresTest, NamesTheRequestWhoseEncodingBrokeTheEngine) {
  int added = 0;
  auto echo = std::make_unique<EchoEngine>(EchoEngine::Options{.on_add = [&] {
    if (++added == 2) throw std::runtime_error("a kernel failed");
  }});
  StallDetector detector;
  GuardedEngine engine(std::move(echo), detector, absl::Minutes(1));
  Batcher batcher(engine, {});
  Outcome running, poison;
  for (auto [outcome, id] : {std::pair{&running, "innocent"}, std::pair{&poison, "poison"}}) {
    auto sequence = test::Say({5, 6, 7}, *outcome);
    sequence->caller.request_id = id;
    ASSERT_THAT(batcher.Add(sequence, kNow), IsOk());
    const StepReport report = batcher.Step([] { return kNow; });
    if (outcome == &poison) {
      EXPECT_THAT(report.failed_requests, ElementsAre("innocent", "poison"));
    }
  }
}

TEST_F(EngineFailuresTest, FailedSequenceDoesNotBreakTheEngine) {
  Then({.not_a_number = 66, .unencodable = 77});
  Start();
  Waited nan, unencodable, good;
  ASSERT_THAT(Submit({5, 66}, nan), IsOk());
  ASSERT_THAT(Submit({77}, unencodable), IsOk());
  EXPECT_THAT(nan.status(), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(unencodable.status(), StatusIs(absl::StatusCode::kInternal));
  ASSERT_THAT(Submit({5}, good), IsOk());
  EXPECT_THAT(good.status(), IsOk());
  EXPECT_EQ(scheduler->health().restarts, 0);
}

TEST_F(EngineFailuresTest, EncodesInSmallerGroupsWhenOutOfMemory) {
  EchoEngine engine({.max_at_once = 2});
  Batcher batcher(engine, {.encode = {.encode_call_tokens = 1000}});
  std::vector<Outcome> outcomes(7);
  for (Outcome& outcome : outcomes) {
    auto sequence = test::Say({5, 6}, outcome);
    ASSERT_THAT(batcher.Add(sequence, kNow), IsOk());
  }
  const StepReport report = batcher.Step([] { return kNow; });
  EXPECT_EQ(report.added, 7);
  EXPECT_THAT(engine.groups, ElementsAre(1, 2, 2, 2));
  while (!batcher.idle()) batcher.Step([] { return kNow; });
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.result->ok());
}

TEST_F(EngineFailuresTest, SequenceThatDoesNotFitAloneMayBeRetried) {
  Then({.max_at_once = 0});
  Start();
  Waited waited;
  ASSERT_THAT(Submit({5}, waited), IsOk());
  EXPECT_THAT(waited.status(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(ErrorReason(waited.status()), "OUT_OF_MEMORY");
  EXPECT_NE(RetryDelay(waited.status()), absl::InfiniteDuration());
  EXPECT_EQ(scheduler->health().restarts, 0);
}

TEST_F(EngineFailuresTest, RefusesWithRetryDelayUntilTheEngineIsRebuilt) {
  Notification both;
  Then({.rows = 1, .on_step = [&] { both.Pass(); }, .failing_step = 1});
  ThenFail("the device is gone");
  Start();
  Waited running, waiting, late, after;
  ASSERT_THAT(Submit({5, 6}, running), IsOk());
  ASSERT_THAT(Submit({7}, waiting), IsOk());
  both.Open();
  EXPECT_EQ(running.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(waiting.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorReason(waiting.status()), "ENGINE_DOWN");
  EXPECT_EQ(ErrorReason(Submit({8}, late)), "ENGINE_DOWN");
  EXPECT_EQ(scheduler->health().state, EngineHealth::State::kDown);
  UntilUp();  // the second attempt is a second later
  ASSERT_THAT(Submit({9}, after), IsOk());
  EXPECT_THAT(after.status(), IsOk());
}

TEST_F(EngineFailuresTest, DrainDoesNotWaitForAnEngineThatIsDown) {
  Then({.failing_step = 1});
  for (int i = 0; i < 100; ++i) ThenFail("the device is gone");
  Start();
  Waited waited;
  ASSERT_THAT(Submit({5}, waited), IsOk());
  EXPECT_FALSE(waited.status().ok());
  scheduler->Drain(MonotonicTime::max());
  scheduler.reset();
}

TEST_F(EngineFailuresTest, DrainEndsWhileTheFirstRebuildHangs) {
  Notification making, go_on;
  Then({.failing_step = 1});
  engines_.push_back([&]() -> absl::StatusOr<std::unique_ptr<model::Engine>> {
    making.Open();
    go_on.Pass();
    return std::make_unique<EchoEngine>();
  });
  Start();
  Waited waited, late;
  ASSERT_THAT(Submit({5}, waited), IsOk());
  EXPECT_FALSE(waited.status().ok());
  making.Pass();
  EXPECT_EQ(state(), EngineHealth::State::kDown);
  EXPECT_EQ(ErrorReason(Submit({6}, late)), "ENGINE_DOWN");
  scheduler->Drain(MonotonicTime::max());
  go_on.Open();
  scheduler.reset();
}

TEST_F(EngineFailuresTest, RebuildBeyondLoadTimeoutFailsForGood) {
  Notification making, go_on;
  Then({.failing_step = 1});
  engines_.push_back([&]() -> absl::StatusOr<std::unique_ptr<model::Engine>> {
    making.Open();
    go_on.Pass();
    return std::make_unique<EchoEngine>();
  });
  Start();
  Waited waited, late;
  ASSERT_THAT(Submit({5}, waited), IsOk());
  making.Pass();
  TickAfter(1.9);
  EXPECT_FALSE(supervisor.failure().has_value());
  TickAfter(2.1);
  ASSERT_TRUE(supervisor.failure().has_value());
  EXPECT_EQ(state(), EngineHealth::State::kFailed);
  EXPECT_EQ(ErrorReason(Submit({6}, late)), "ENGINE_DOWN");
  go_on.Open();
  scheduler.reset();
}

TEST_F(EngineFailuresTest, StartFailsBeyondLoadTimeout) {
  Notification making, go_on;
  engines_.push_back([&]() -> absl::StatusOr<std::unique_ptr<model::Engine>> {
    making.Open();
    go_on.Pass();
    return std::make_unique<EchoEngine>();
  });
  absl::Status status;
  std::thread starting([&] {
    status = Scheduler::Start(engines_.front(), {}, nullptr,
                              {.load_timeout = absl::Hours(2), .supervisor = &supervisor})
                 .status();
  });
  making.Pass();
  TickAfter(2.1);
  EXPECT_TRUE(supervisor.failure().has_value());
  EXPECT_EQ(ends, 1) << "only the supervisor can end the process";
  go_on.Open();
  starting.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(EngineFailuresTest, EngineFailsForGoodAfterMaxFailedRebuilds) {
  Then({.failing_step = 1});
  std::atomic<int> tries = 0;
  for (int i = 0; i < 100; ++i) {
    engines_.push_back([&]() -> absl::StatusOr<std::unique_ptr<model::Engine>> {
      ++tries;
      return absl::InternalError("no memory");
    });
  }
  Start();
  Waited waited, late;
  ASSERT_THAT(Submit({5}, waited), IsOk());
  while (state() != EngineHealth::State::kFailed) {
    TickAfter(0);
    EXPECT_FALSE(supervisor.failure().has_value());
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_EQ(tries, 2);
  EXPECT_EQ(ErrorReason(Submit({6}, late)), "ENGINE_DOWN");
  TickAfter(0);
  ASSERT_TRUE(supervisor.failure().has_value());
  EXPECT_THAT(supervisor.failure()->why.message(), HasSubstr("no memory"));
}

TEST_F(EngineFailuresTest, LostDeviceFailsForGoodAndNamesRunningCalls) {
  Notification both;
  Then({.rows = 1, .on_step = [&] { both.Pass(); }, .device_lost = [] { return true; }});
  std::atomic<int> tries = 0;
  engines_.push_back([&]() -> absl::StatusOr<std::unique_ptr<model::Engine>> {
    ++tries;
    return std::make_unique<EchoEngine>();
  });
  Start();
  Waited running, waiting, late;
  ASSERT_THAT(Submit({5, 6}, running, "the-culprit"), IsOk());
  ASSERT_THAT(Submit({7}, waiting, "innocent"), IsOk());
  both.Open();
  EXPECT_EQ(running.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ErrorReason(waiting.status()), "ENGINE_DOWN");
  while (state() != EngineHealth::State::kFailed) absl::SleepFor(kShort);
  EXPECT_EQ(tries, 0);
  EXPECT_EQ(ErrorReason(Submit({6}, late)), "ENGINE_DOWN");
  TickAfter(0);
  ASSERT_TRUE(supervisor.failure().has_value());
  EXPECT_EQ(supervisor.failure()->model, "en-de");
  EXPECT_THAT(supervisor.failure()->request_ids, ElementsAre("the-culprit"));
}

TEST_F(EngineFailuresTest, ExceptionOfTheSchedulersThreadFailsForGood) {
  observer = [](const StepReport& report, absl::Duration) {
    if (report.stepped) throw std::runtime_error("nobody expects it");
  };
  Then({.rows = 1});
  Start();
  Waited running, waiting, late;
  std::vector<std::unique_ptr<Sequence>> both;
  both.push_back(test::Say({5, 6}, running));
  both.back()->caller.request_id = "the-culprit";
  both.push_back(test::Say({7}, waiting));
  testing::internal::CaptureStderr();
  ASSERT_THAT(scheduler->Submit(both), IsOk());
  EXPECT_THAT(running.status(), StatusIs(absl::StatusCode::kInternal, HasSubstr("nobody expects")));
  EXPECT_EQ(ErrorReason(waiting.status()), "ENGINE_DOWN");
  EXPECT_EQ(ErrorReason(Submit({8}, late)), "ENGINE_DOWN");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("engine_thread_failed model=en-de why=\"nobody expects it\""));
  TickAfter(0);
  ASSERT_TRUE(supervisor.failure().has_value());
  EXPECT_THAT(supervisor.failure()->request_ids, ElementsAre("the-culprit"));
}

// An exception may drop a sequence that no queue holds: its call would wait for ever.
TEST_F(EngineFailuresTest, SequenceDroppedByAnExceptionEnds) {
  Waited waited;
  {
    auto sequence = test::Say({5}, waited);
    sequence->accepted = true;
  }
  EXPECT_THAT(waited.status(), StatusIs(absl::StatusCode::kInternal));
}

// Engines that block in their first call of one kind until the test releases them.
class StalledEngineTest : public EngineFailuresTest {
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
  testing::internal::CaptureStderr();
  TickAfter(1.1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_FALSE(running.status().ok());
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

TEST_F(EngineFailuresTest, DoesNotEncodeAfterTheEngineThrew) {
  int adds = 0;
  EchoEngine::Options options;
  options.on_add = [&] {
    if (++adds == 1) throw std::runtime_error("a kernel failed");
  };
  StallDetector detector;
  GuardedEngine engine(std::make_unique<EchoEngine>(options), detector, absl::InfiniteDuration());
  // Two lengths and encoder calls without fixed cost: two groups.
  Batcher batcher(engine, {.encode = {.encode_call_tokens = 0}});
  Outcome first, second;
  auto one = test::Say({5}, first);
  auto two = test::Say({5, 6, 7, 8, 9}, second);
  ASSERT_THAT(batcher.Add(one, kNow), IsOk());
  ASSERT_THAT(batcher.Add(two, kNow), IsOk());
  batcher.Step([] { return kNow; });
  EXPECT_EQ(adds, 1);
  EXPECT_EQ(first.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(second.code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace linnet::server
