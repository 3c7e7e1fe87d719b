// Engines that throw, run out of memory, return NaN, cannot be rebuilt or lose their device: their
// sequences end at once, and the health of the scheduler shows the failure.
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "server/base/errors.h"
#include "server/schedule/batcher.h"
#include "tests/server/schedule/engine_failures_fixture.h"
#include "tests/support/notification.h"

namespace linnet::server {
namespace {

using test::EchoEngine;
using test::Notification;
using test::Outcome;
using test::Waited;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);

class EngineFailuresTest : public EngineFailures {};

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
  ThenHang(making, go_on);
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
  ThenHang(making, go_on);
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
  ThenHang(making, go_on);
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
  ASSERT_THAT(Submit({5}, waited, "the-culprit"), IsOk());
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
  EXPECT_THAT(supervisor.failure()->request_ids, ElementsAre("the-culprit"));
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
