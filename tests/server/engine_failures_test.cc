// Engines that throw, run out of memory, say what is not a number, cannot be made again, or do not
// return: only their own sequences suffer, and all of it can be seen.
#include <atomic>
#include <deque>
#include <memory>
#include <stdexcept>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "server/errors.h"
#include "server/schedule/restart_policy.h"
#include "server/schedule/scheduler.h"
#include "tests/support/echo_engine.h"
#include "tests/support/recording_sink.h"
#include "tests/support/status_matchers.h"
#include "tests/support/turnstile.h"
#include "tests/support/waited_sink.h"

namespace linnet::server {
namespace {

using test::EchoEngine;
using test::Outcome;
using test::Turnstile;
using test::Waited;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);

TEST(RestartPolicyTest, TheFirstFailureCostsNoTimeAndTheNextOnesMoreAndMore) {
  RestartPolicy policy;
  EXPECT_EQ(policy.Failed(kNow), absl::ZeroDuration());
  for (int seconds : {1, 2, 4, 8, 16, 32, 60, 60})
    EXPECT_EQ(policy.Failed(kNow), absl::Seconds(seconds));
}

TEST(RestartPolicyTest, AMinuteOfWorkIsAsGoodAsNew) {
  RestartPolicy policy;
  policy.Failed(kNow);
  policy.Failed(kNow);  // and made again a second later
  EXPECT_EQ(policy.Failed(kNow + absl::Seconds(61)), absl::Seconds(2));
  EXPECT_EQ(policy.Failed(kNow + absl::Seconds(63 + 61)), absl::ZeroDuration());
}

// A scheduler whose engines are made by a list: each as the puppeteer wants it, or not at all.
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
        options, nullptr);
    ASSERT_THAT(started, IsOk());
    scheduler = *std::move(started);
  }
  absl::Status Submit(std::vector<model::TokenId> words, Waited& waited) {
    std::vector<std::unique_ptr<Sequence>> one;
    one.push_back(test::Say(std::move(words), waited));
    return scheduler->Submit(one);
  }
  void UntilUp() {
    while (scheduler->health().state != EngineHealth::State::kUp) absl::SleepFor(kShort);
  }

  static constexpr absl::Duration kShort = absl::Milliseconds(1);
  std::deque<Make> engines_;
  std::unique_ptr<Scheduler> scheduler;
};

TEST_F(EngineFailuresTest, AnEngineThatThrowsInAStepIsMadeAgainAndThoseWhoWaitedAreServed) {
  Turnstile both;
  Then({.rows = 1, .on_step = [&] {
          both.Pass();
          throw std::runtime_error("a kernel failed");
        }});
  Start();
  Waited seated, waiting;
  ASSERT_THAT(Submit({5, 6}, seated), IsOk());
  ASSERT_THAT(Submit({7}, waiting), IsOk());
  both.Open();
  EXPECT_THAT(seated.status(), StatusIs(absl::StatusCode::kInternal, HasSubstr("kernel failed")));
  EXPECT_THAT(waiting.status(), IsOk());
  EXPECT_THAT(waiting.outcome.tokens(), ElementsAre(7, 2));
  EXPECT_EQ(scheduler->health().restarts, 1);
  EXPECT_EQ(scheduler->health().state, EngineHealth::State::kUp);
}

TEST_F(EngineFailuresTest, AnEngineThatThrowsWhenItEncodesIsMadeAgainToo) {
  Then({.on_seat = [] { throw 7; }});
  Start();
  Waited first, second;
  ASSERT_THAT(Submit({5}, first), IsOk());
  EXPECT_THAT(first.status(), StatusIs(absl::StatusCode::kInternal, HasSubstr("threw")));
  ASSERT_THAT(Submit({6}, second), IsOk());
  EXPECT_THAT(second.status(), IsOk());
  EXPECT_EQ(scheduler->health().restarts, 1);
}

TEST_F(EngineFailuresTest, ASequenceThatFailsByItselfCostsNobodyTheEngine) {
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

TEST_F(EngineFailuresTest, WhatDoesNotFitIntoMemoryTogetherIsEncodedInParts) {
  EchoEngine engine({.most_at_once = 2});
  Batcher batcher(engine, {.admit = {.encode_call_tokens = 1000}});
  std::vector<Outcome> outcomes(7);
  for (Outcome& outcome : outcomes) {
    auto sequence = test::Say({5, 6}, outcome);
    ASSERT_THAT(batcher.Add(sequence, kNow), IsOk());
  }
  const StepReport report = batcher.Step([] { return kNow; });
  EXPECT_EQ(report.seated, 7);
  EXPECT_THAT(engine.groups, ElementsAre(1, 2, 2, 2));
  while (!batcher.idle()) batcher.Step([] { return kNow; });
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.result->ok());
}

TEST_F(EngineFailuresTest, WhatDoesNotEvenFitAloneMayBeRetried) {
  Then({.most_at_once = 0});
  Start();
  Waited waited;
  ASSERT_THAT(Submit({5}, waited), IsOk());
  EXPECT_THAT(waited.status(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(ErrorReason(waited.status()), "OUT_OF_MEMORY");
  EXPECT_NE(RetryDelay(waited.status()), absl::InfiniteDuration());
  EXPECT_EQ(scheduler->health().restarts, 0);
}

TEST_F(EngineFailuresTest, WhileAnEngineCannotBeMadeAgainCallersAreToldToComeBackAndThenItIs) {
  Turnstile both;
  Then({.rows = 1, .on_step = [&] { both.Pass(); }, .failing_step = 1});
  ThenFail("the device is gone");
  Start();
  Waited seated, waiting, late, after;
  ASSERT_THAT(Submit({5, 6}, seated), IsOk());
  ASSERT_THAT(Submit({7}, waiting), IsOk());
  both.Open();
  EXPECT_EQ(seated.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(waiting.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorReason(waiting.status()), "ENGINE_DOWN");
  EXPECT_EQ(ErrorReason(Submit({8}, late)), "ENGINE_DOWN");
  EXPECT_EQ(scheduler->health().state, EngineHealth::State::kDown);
  UntilUp();  // the second try is a second later
  ASSERT_THAT(Submit({9}, after), IsOk());
  EXPECT_THAT(after.status(), IsOk());
}

TEST_F(EngineFailuresTest, ADrainDoesNotWaitForAnEngineThatIsDown) {
  Then({.failing_step = 1});
  for (int i = 0; i < 100; ++i) ThenFail("the device is gone");
  Start();
  Waited waited;
  ASSERT_THAT(Submit({5}, waited), IsOk());
  EXPECT_FALSE(waited.status().ok());
  scheduler->Drain(absl::InfiniteFuture());
  scheduler.reset();
}

TEST_F(EngineFailuresTest, AStuckEnginesCallersAreToldAndWhenItComesBackItIsMadeAgain) {
  Turnstile inside, go_on;
  Then({.rows = 1, .on_step = [&] {
          inside.Open();
          go_on.Pass();
        }});
  Start();
  Waited seated, waiting, late, after;
  ASSERT_THAT(Submit({5, 6}, seated), IsOk());
  inside.Pass();
  ASSERT_THAT(Submit({7}, waiting), IsOk());
  scheduler->Watch(absl::Now(), absl::Hours(1));
  EXPECT_EQ(scheduler->health().state, EngineHealth::State::kUp) << "there is time yet";
  scheduler->Watch(absl::Now(), absl::ZeroDuration());
  EXPECT_EQ(ErrorReason(seated.status()), "ENGINE_DOWN");
  EXPECT_EQ(ErrorReason(waiting.status()), "ENGINE_DOWN");
  EXPECT_EQ(ErrorReason(Submit({8}, late)), "ENGINE_DOWN");
  EXPECT_EQ(scheduler->health().state, EngineHealth::State::kStuck);
  scheduler->Watch(absl::Now(), absl::ZeroDuration());  // once is enough
  go_on.Open();
  UntilUp();
  ASSERT_THAT(Submit({9}, after), IsOk());
  EXPECT_THAT(after.status(), IsOk());
  EXPECT_EQ(scheduler->health().restarts, 1);
}

TEST_F(EngineFailuresTest, AnEngineThatIsStuckWhileItEncodesIsNoDifferent) {
  Turnstile inside, go_on;
  Then({.on_seat = [&] {
    inside.Open();
    go_on.Pass();
  }});
  Start();
  Waited waited, after;
  ASSERT_THAT(Submit({5, 6}, waited), IsOk());
  inside.Pass();
  scheduler->Watch(absl::Now(), absl::ZeroDuration());
  EXPECT_EQ(ErrorReason(waited.status()), "ENGINE_DOWN");
  go_on.Open();
  UntilUp();
  ASSERT_THAT(Submit({9}, after), IsOk());
  EXPECT_THAT(after.status(), IsOk());
}

TEST_F(EngineFailuresTest, ADrainDoesNotWaitForAStuckEngine) {
  Turnstile inside, go_on;
  Then({.on_step = [&] {
    inside.Open();
    go_on.Pass();
  }});
  Start();
  Waited waited;
  ASSERT_THAT(Submit({5}, waited), IsOk());
  inside.Pass();
  scheduler->Watch(absl::Now(), absl::ZeroDuration());
  scheduler->Drain(absl::InfiniteFuture());
  EXPECT_EQ(ErrorReason(waited.status()), "ENGINE_DOWN");
  go_on.Open();
  scheduler.reset();  // its engine may still stand in the turnstile
}

TEST_F(EngineFailuresTest, AnIdleEngineIsNotStuck) {
  Start();
  Waited waited;
  ASSERT_THAT(Submit({5}, waited), IsOk());
  EXPECT_THAT(waited.status(), IsOk());
  scheduler->Drain(absl::InfiniteFuture());
  scheduler->Watch(absl::Now() + absl::Hours(1), absl::ZeroDuration());
  EXPECT_EQ(scheduler->health().state, EngineHealth::State::kUp);
}

// Engines that do not return from their first step until a turnstile opens.
class AbandonedEngineTest : public EngineFailuresTest {
 protected:
  struct Wedge {
    Turnstile inside, go_on;
  };
  // Shared with the engine, whose thread may still stand in it when the test's body has ended.
  std::shared_ptr<Wedge> ThenWedge() {
    auto wedge = std::make_shared<Wedge>();
    Then({.on_step = [wedge] {
      wedge->inside.Open();
      wedge->go_on.Pass();
    }});
    return wedge;
  }
  void GiveUp(int most_abandoned) {
    scheduler->Watch(absl::Now(), absl::ZeroDuration(), most_abandoned);
  }
  // Until the calls of the abandoned engines have returned and their threads are gone.
  void UntilNoneIsAbandoned() {
    while (scheduler->health().abandoned > 0) {
      absl::SleepFor(kShort);
      scheduler->Watch(absl::Now(), absl::Hours(1), 0);
    }
  }
};

TEST_F(AbandonedEngineTest, AnotherEngineServesWhileTheStuckOneStillDoesNotReturn) {
  const auto wedge = ThenWedge();
  Start();
  Waited seated, after;
  ASSERT_THAT(Submit({5, 6}, seated), IsOk());
  wedge->inside.Pass();
  GiveUp(1);
  EXPECT_EQ(ErrorReason(seated.status()), "ENGINE_DOWN");
  UntilUp();
  ASSERT_THAT(Submit({9}, after), IsOk());
  EXPECT_THAT(after.status(), IsOk());
  EXPECT_EQ(scheduler->health().abandoned, 1);
  EXPECT_EQ(scheduler->health().restarts, 1);
  EXPECT_TRUE(scheduler->stuck()) << "it cannot be destroyed yet";
  wedge->go_on.Open();
  UntilNoneIsAbandoned();
  EXPECT_FALSE(scheduler->stuck());
  EXPECT_EQ(scheduler->health().restarts, 1) << "what came back is not made again";
}

TEST_F(AbandonedEngineTest, NoMoreAreLeftBehindThanIsAllowedAndTheLastOneIsWaitedFor) {
  const auto first = ThenWedge();
  const auto second = ThenWedge();
  Start();
  Waited one, two, late, after;
  ASSERT_THAT(Submit({5}, one), IsOk());
  first->inside.Pass();
  GiveUp(1);
  UntilUp();
  ASSERT_THAT(Submit({6}, two), IsOk());
  second->inside.Pass();
  GiveUp(1);
  EXPECT_EQ(ErrorReason(two.status()), "ENGINE_DOWN");
  EXPECT_EQ(scheduler->health().state, EngineHealth::State::kStuck);
  EXPECT_EQ(scheduler->health().abandoned, 1);
  EXPECT_EQ(ErrorReason(Submit({7}, late)), "ENGINE_DOWN");
  second->go_on.Open();
  UntilUp();
  ASSERT_THAT(Submit({8}, after), IsOk());
  EXPECT_THAT(after.status(), IsOk());
  first->go_on.Open();
}

TEST_F(AbandonedEngineTest, WhatCannotBeReplacedAtOnceIsTriedAgain) {
  const auto wedge = ThenWedge();
  const auto refused = std::make_shared<Turnstile>();
  ThenFail("there is no memory for two");
  engines_.push_back([refused] {
    refused->Pass();
    return std::make_unique<EchoEngine>();
  });
  Start();
  Waited seated, late, after;
  ASSERT_THAT(Submit({5, 6}, seated), IsOk());
  wedge->inside.Pass();
  GiveUp(1);
  EXPECT_EQ(ErrorReason(Submit({7}, late)), "ENGINE_DOWN");
  refused->Open();
  UntilUp();  // a second later
  ASSERT_THAT(Submit({9}, after), IsOk());
  EXPECT_THAT(after.status(), IsOk());
  wedge->go_on.Open();
}

TEST_F(AbandonedEngineTest, ThoseThatItTookWithItAreCountedOnceAndAtOnce) {
  const auto wedge = ThenWedge();
  std::atomic<int> failed = 0;
  auto started = Scheduler::Start(
      [this]() -> absl::StatusOr<std::unique_ptr<model::Engine>> {
        if (engines_.empty()) return std::make_unique<EchoEngine>();
        const Make make = engines_.front();
        engines_.pop_front();
        return make();
      },
      {}, [&](const StepReport& report, absl::Duration) { failed += report.failed; });
  ASSERT_THAT(started, IsOk());
  scheduler = *std::move(started);
  Waited first, second;
  ASSERT_THAT(Submit({5, 6}, first), IsOk());
  wedge->inside.Pass();
  ASSERT_THAT(Submit({7}, second), IsOk());
  GiveUp(1);
  EXPECT_EQ(failed, 2);
  wedge->go_on.Open();
  UntilNoneIsAbandoned();
  EXPECT_EQ(failed, 2);
}

TEST_F(AbandonedEngineTest, ADrainDoesNotWaitForIt) {
  const auto wedge = ThenWedge();
  Start();
  Waited seated;
  ASSERT_THAT(Submit({5}, seated), IsOk());
  wedge->inside.Pass();
  GiveUp(1);
  scheduler->Drain(absl::InfiniteFuture());
  EXPECT_FALSE(seated.status().ok());
  wedge->go_on.Open();
  scheduler.reset();
}

TEST_F(EngineFailuresTest, AnEngineThatThrewIsNotAskedToEncodeTheNextGroup) {
  int seats = 0;
  EchoEngine::Options options;
  options.on_seat = [&] {
    if (++seats == 1) throw std::runtime_error("a kernel failed");
  };
  auto inner = std::make_unique<EchoEngine>(options);
  const model::EngineInfo info = inner->info();
  GuardedEngine engine(info, std::move(inner));
  // Two lengths, and calls that cost nothing: two groups.
  Batcher batcher(engine, {.admit = {.encode_call_tokens = 0}});
  Outcome first, second;
  auto one = test::Say({5}, first);
  auto two = test::Say({5, 6, 7, 8, 9}, second);
  ASSERT_THAT(batcher.Add(one, kNow), IsOk());
  ASSERT_THAT(batcher.Add(two, kNow), IsOk());
  batcher.Step([] { return kNow; });
  EXPECT_EQ(seats, 1);
  EXPECT_EQ(first.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(second.code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace linnet::server
