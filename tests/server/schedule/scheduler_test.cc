#include "server/schedule/scheduler.h"
#include "server/base/monotonic.h"

#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/echo_engine.h"
#include "tests/support/notification.h"
#include "tests/support/status_matchers.h"
#include "tests/support/waited_sink.h"

namespace linnet::server {
namespace {

using test::EchoEngine;
using test::Notification;
using test::Say;
using test::Waited;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::unique_ptr<Sequence>> One(std::unique_ptr<Sequence> sequence) {
  std::vector<std::unique_ptr<Sequence>> one;
  one.push_back(std::move(sequence));
  return one;
}

std::unique_ptr<Scheduler> StartEcho(EchoEngine::Options options = {},
                                     Scheduler::Observer observer = nullptr) {
  auto scheduler =
      Scheduler::Start([options] { return std::make_unique<EchoEngine>(options); }, {}, observer);
  EXPECT_THAT(scheduler, IsOk());
  return *std::move(scheduler);
}

TEST(SchedulerTest, DecodesSubmittedSequences) {
  auto scheduler = StartEcho();
  Waited waited;
  auto sequences = One(Say({5, 6}, waited));
  ASSERT_THAT(scheduler->Submit(sequences), IsOk());
  EXPECT_TRUE(sequences.empty());
  waited.done.Pass();
  EXPECT_THAT(waited.outcome.tokens(), ElementsAre(5, 6, 2));
}

TEST(SchedulerTest, StartReturnsTheFactorysError) {
  auto scheduler = Scheduler::Start(
      []() -> absl::StatusOr<std::unique_ptr<model::Engine>> {
        return absl::FailedPreconditionError("no GPU here");
      },
      {}, nullptr);
  EXPECT_THAT(scheduler, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no GPU")));
}

TEST(SchedulerTest, BuildsUsesAndDestroysTheEngineOnOneThread) {
  std::thread::id made, stepped;
  auto factory = [&] {
    made = std::this_thread::get_id();
    return std::make_unique<EchoEngine>(
        EchoEngine::Options{.on_step = [&] { stepped = std::this_thread::get_id(); }});
  };
  auto scheduler = Scheduler::Start(factory, {}, nullptr);
  ASSERT_THAT(scheduler, IsOk());
  Waited waited;
  auto sequences = One(Say({5}, waited));
  ASSERT_THAT((*scheduler)->Submit(sequences), IsOk());
  waited.done.Pass();
  EXPECT_EQ(made, stepped);
  EXPECT_NE(made, std::this_thread::get_id());
}

TEST(SchedulerTest, SubmitTakesAllSequencesOrNone) {
  auto scheduler = StartEcho();
  Waited good, bad;
  auto sequences = One(Say({5}, good));
  sequences.push_back(Say({6}, bad));
  sequences.back()->input.options.beam_size = 100;
  EXPECT_THAT(scheduler->Submit(sequences),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("beam_size is 100")));
  EXPECT_EQ(sequences.size(), 2);
  EXPECT_FALSE(good.outcome.done());
}

TEST(SchedulerTest, CancelEndsASequenceWithinAStep) {
  Notification first_step, go_on;
  auto scheduler = StartEcho({.on_step = [&] {
    first_step.Open();
    go_on.Pass();
  }});
  Waited waited;
  auto flag = std::make_shared<Cancellation>();
  auto sequences = One(Say({5, 6, 7, 8, 9}, waited));
  sequences[0]->cancelled = flag;
  ASSERT_THAT(scheduler->Submit(sequences), IsOk());
  first_step.Pass();
  flag->Cancel();
  go_on.Open();
  waited.done.Pass();
  EXPECT_EQ(waited.outcome.code(), absl::StatusCode::kCancelled);
}

TEST(SchedulerTest, DrainFinishesSubmittedAndRefusesNewSequences) {
  auto scheduler = StartEcho();
  std::vector<Waited> taken(20);
  for (int i = 0; i < std::ssize(taken); ++i) {
    auto sequences = One(Say({100 + i, 5, 6}, taken[i]));
    ASSERT_THAT(scheduler->Submit(sequences), IsOk());
  }
  scheduler->Drain(MonotonicTime::max());
  for (int i = 0; i < std::ssize(taken); ++i) {
    ASSERT_TRUE(taken[i].outcome.done());
    EXPECT_THAT(taken[i].outcome.tokens(), ElementsAre(100 + i, 5, 6, 2));
  }
  Waited late;
  auto admitted = One(Say({7}, late));
  EXPECT_EQ(scheduler->Submit(admitted).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(admitted.size(), 1) << "the caller still owns it";
}

// A sequence that runs for a million steps unless it is ended.
EchoEngine::Options Endless() {
  return {.encoder_cache_tokens = 1 << 21, .limits = {.max_target_tokens = 1 << 20}};
}
std::unique_ptr<Sequence> SayEndlessly(Waited& waited) {
  auto sequence = Say(std::vector<model::TokenId>(1 << 20, 5), waited);
  sequence->input.options.max_target_tokens = 1 << 20;
  return sequence;
}

TEST(SchedulerTest, DrainEndsRemainingSequencesAtItsDeadline) {
  auto scheduler = StartEcho(Endless());
  Waited waited;
  auto sequences = One(SayEndlessly(waited));
  ASSERT_THAT(scheduler->Submit(sequences), IsOk());
  scheduler->Drain(MonotonicNow());
  ASSERT_TRUE(waited.outcome.done());
  EXPECT_EQ(waited.outcome.code(), absl::StatusCode::kUnavailable);
}

TEST(SchedulerTest, DestructorEndsRemainingSequences) {
  Waited waited;
  auto scheduler = StartEcho(Endless());
  auto sequences = One(SayEndlessly(waited));
  ASSERT_THAT(scheduler->Submit(sequences), IsOk());
  scheduler.reset();
  ASSERT_TRUE(waited.outcome.done());
  EXPECT_EQ(waited.outcome.code(), absl::StatusCode::kUnavailable);
}

TEST(SchedulerTest, ObserverIsCalledAfterEveryStep) {
  std::vector<StepReport> reports;  // written on the scheduler's thread, read after its end
  auto scheduler =
      StartEcho({}, [&](const StepReport& report, absl::Duration) { reports.push_back(report); });
  Waited waited;
  auto sequences = One(Say({5, 6}, waited));
  ASSERT_THAT(scheduler->Submit(sequences), IsOk());
  scheduler->Drain(MonotonicTime::max());
  scheduler.reset();
  ASSERT_EQ(reports.size(), 3);
  EXPECT_EQ(reports.front().added, 1);
  EXPECT_EQ(reports.back().finished, 1);
}

TEST(SchedulerTest, ConcurrentSubmitsAndCancelsEndOnce) {
  constexpr int kThreads = 4, kEach = 200;
  auto scheduler = StartEcho();
  std::vector<std::vector<Waited>> waited(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    waited[t] = std::vector<Waited>(kEach);
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (Waited& one : waited[t]) {
        auto flag = std::make_shared<Cancellation>();
        auto sequences = One(Say(std::vector<model::TokenId>(random() % 10, 5), one));
        sequences[0]->cancelled = flag;
        ASSERT_THAT(scheduler->Submit(sequences), IsOk());
        if (random() % 4 == 0) flag->Cancel();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  scheduler->Drain(MonotonicTime::max());
  for (auto& of_thread : waited) {
    for (Waited& one : of_thread) {
      ASSERT_TRUE(one.outcome.done());
      EXPECT_TRUE(one.outcome.result->ok() || one.outcome.code() == absl::StatusCode::kCancelled);
    }
  }
}

}  // namespace
}  // namespace linnet::server
