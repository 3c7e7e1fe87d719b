// Tests load runs: every call is counted once, and latency includes the waiting during a stall.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/run/run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace linnet::client {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// The number of calls that a record accounts for.
int64_t Accounted(const LoadRecord& record) {
  return record.measured() + record.warm_up() + record.not_sent();
}

LoadResult Ran(const LoadPlan& plan, const MakeCall& call, std::stop_token stop) {
  return RunLoad(plan, call, std::move(stop)).value();
}

LoadPlan Constant(double rate, absl::Duration duration) {
  LoadPlan plan;
  plan.arrivals = ArrivalKind::kConstant;
  plan.schedule = RateSchedule::Constant(rate);
  plan.duration = duration;
  return plan;
}

TEST(LoadRunTest, OpenLoopMakesEachCallOnceAtItsDueTime) {
  LoadPlan plan = Constant(400, absl::Milliseconds(500));
  plan.callers = 4;
  std::mutex mu;
  std::vector<int64_t> made;
  const absl::Time start = absl::Now();
  const LoadResult result =
      Ran(plan,
          [&](int64_t index, int caller) -> CallOutcome {
            const absl::Duration now = absl::Now() - start;
            EXPECT_GE(now, absl::Milliseconds(2.5) * index - absl::Milliseconds(1));
            EXPECT_TRUE(0 <= caller && caller < 4);
            std::lock_guard lock(mu);
            made.push_back(index);
            return {};
          },
          {});
  std::sort(made.begin(), made.end());
  std::vector<int64_t> all(200);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_THAT(made, ElementsAreArray(all));
  EXPECT_EQ(result.record.measured(), 200);
  EXPECT_EQ(Accounted(result.record), 200);
  EXPECT_FALSE(result.stopped);
}

TEST(LoadRunTest, CountsEveryOutcomeByStatus) {
  LoadPlan plan;
  plan.open = false;
  plan.callers = 3;
  plan.max_calls = 300;
  const LoadResult result = Ran(plan,
                                [](int64_t index, int) -> CallOutcome {
                                  if (index % 3 == 0) return {absl::UnavailableError("gone")};
                                  if (index % 3 == 1) return {absl::DeadlineExceededError("late")};
                                  return {absl::OkStatus(), 1, 1, 2};
                                },
                                {});
  for (const auto& [code, status] : result.record.by_status()) {
    EXPECT_EQ(status.from_sent.count(), 100) << code;
  }
  EXPECT_EQ(Accounted(result.record), 300);
  EXPECT_EQ(result.record.target_tokens(), 200);
}

TEST(LoadRunTest, ClosedLoopKeepsExactlyItsCallersBusy) {
  LoadPlan plan;
  plan.open = false;
  plan.callers = 5;
  plan.max_calls = 60;
  std::atomic<int> in_flight = 0, max = 0;
  const LoadResult result =
      Ran(plan,
          [&](int64_t, int) -> CallOutcome {
            const int now = ++in_flight;
            for (int seen = max; seen < now && !max.compare_exchange_weak(seen, now);) {
            }
            absl::SleepFor(absl::Milliseconds(5));
            --in_flight;
            return {};
          },
          {});
  EXPECT_EQ(max, 5);
  EXPECT_EQ(result.record.measured(), 60);
  EXPECT_EQ(result.record.late(), 0);
}

// The checks hold on any machine, however slow: calls due while the one caller was blocked have
// waited, while the durations of the calls cannot sum up to more than the run.
TEST(LoadRunTest, StallDelaysTheCallsDueInIt) {
  LoadPlan plan = Constant(200, absl::Milliseconds(600));
  plan.callers = 1;
  const absl::Duration stall = absl::Milliseconds(400);
  const LoadResult result = Ran(plan,
                                [&](int64_t index, int) -> CallOutcome {
                                  if (index == 20) absl::SleepFor(stall);
                                  return {};
                                },
                                {});
  ASSERT_EQ(result.record.measured(), 120);
  const StatusRecord& ok = result.record.by_status().at(absl::StatusCode::kOk);
  // Calls are due every 5 ms: 40 of the 80 calls due during the stall wait at least 200 ms.
  const int64_t waited = 120 - ok.from_intended.CountUpTo(absl::Milliseconds(199));
  EXPECT_GE(waited, 40);
  EXPECT_GE(ok.from_intended.Percentile(70), absl::Milliseconds(200));
  EXPECT_LE(ok.from_sent.mean() * 120, result.elapsed);
  EXPECT_GE(ok.from_intended.mean() * 120, absl::Milliseconds(200) * 40);
  EXPECT_GE(result.record.late(), 40);
}

TEST(LoadRunTest, CountsCallsThatAreNotSentInTime) {
  LoadPlan plan = Constant(1000, absl::Milliseconds(50));
  plan.callers = 1;
  plan.drain = absl::ZeroDuration();
  const LoadResult result =
      Ran(plan,
          [&](int64_t, int) -> CallOutcome {
            absl::SleepFor(absl::Milliseconds(100));  // beyond the end of the run
            return {};
          },
          {});
  EXPECT_EQ(result.record.measured(), 1);
  EXPECT_EQ(result.record.not_sent(), 49);
}

TEST(LoadRunTest, WarmUpCallsAreNotMeasured) {
  LoadPlan plan = Constant(500, absl::Milliseconds(100));
  plan.warm_up = absl::Milliseconds(100);
  const LoadResult result = Ran(plan, [](int64_t, int) -> CallOutcome { return {}; }, {});
  EXPECT_EQ(result.record.warm_up(), 50);
  EXPECT_EQ(result.record.measured(), 50);
}

TEST(LoadRunTest, ReportsEachStepOfASchedule) {
  LoadPlan plan;
  plan.arrivals = ArrivalKind::kConstant;
  plan.schedule = RateSchedule::Parse("100:200ms,400:200ms,0..400:400ms").value();
  plan.duration = plan.schedule.length();
  plan.warm_up = absl::Milliseconds(100);
  const LoadResult result = Ran(plan, [](int64_t, int) -> CallOutcome { return {}; }, {});
  EXPECT_EQ(result.record.warm_up(), 10);
  ASSERT_EQ(result.parts.size(), 10);  // two steps, and a ramp in eight
  EXPECT_EQ(result.parts[0].measured(), 20);
  EXPECT_NEAR(result.parts[1].measured(), 80, 1);
  int64_t last = 0, sum = 0;
  for (const LoadRecord& part : result.parts) sum += part.offered();
  for (size_t i = 2; i < 10; ++i) {
    EXPECT_EQ(result.parts[i].window(), absl::Milliseconds(50));
    EXPECT_GT(result.parts[i].offered(), last);
    last = result.parts[i].offered();
  }
  EXPECT_EQ(sum, result.record.offered());
  EXPECT_NEAR(sum, 180, 1);
}

TEST(LoadRunTest, GivesUpAfterTooManyBadCalls) {
  LoadPlan plan = Constant(500, absl::Hours(1));
  plan.give_up = GiveUp{absl::Seconds(30), 20};
  const LoadResult result = Ran(plan,
                                [](int64_t index, int) -> CallOutcome {
                                  if (index % 2 == 0) return {absl::UnavailableError("gone")};
                                  return {};
                                },
                                {});
  EXPECT_TRUE(result.gave_up);
  EXPECT_FALSE(result.stopped);
  EXPECT_GE(result.record.by_status().at(absl::StatusCode::kUnavailable).from_sent.count(), 21);
  EXPECT_LT(result.record.window(), absl::Minutes(30));
}

TEST(LoadRunTest, AbandonedCallsDoNotMakeItGiveUp) {
  LoadPlan plan = Constant(1000, absl::Milliseconds(200));
  plan.give_up = GiveUp{absl::Seconds(30), 0};
  const LoadResult result =
      Ran(plan,
          [](int64_t, int) -> CallOutcome {
            return {.status = absl::CancelledError("left"), .abandonment = Abandonment::kCancel};
          },
          {});
  EXPECT_FALSE(result.gave_up);
  EXPECT_EQ(result.record.abandoned(), 200);
}

TEST(LoadRunTest, ReportsEveryCallAndProgress) {
  LoadPlan plan = Constant(100, absl::Hours(1));
  plan.max_calls = 200;
  int calls = 0;
  plan.on_call = [&calls](const CallTimes& times, const CallOutcome& outcome) {
    ++calls;
    EXPECT_LE(times.intended, times.ended);
    EXPECT_TRUE(outcome.status.ok());
  };
  std::vector<LoadProgress> progress;
  plan.on_progress = [&progress](const LoadProgress& now) { progress.push_back(now); };
  Ran(plan, [](int64_t, int) -> CallOutcome { return {}; }, {});
  EXPECT_EQ(calls, 200);
  ASSERT_FALSE(progress.empty());  // the last call is due two seconds after the first
  int64_t answered = 0;
  for (const LoadProgress& now : progress) answered += now.answered;
  EXPECT_EQ(answered, progress.back().ended) << "each is reported once";
}

TEST(LoadRunTest, TooFewThreadsAreAnError) {
  pthread_attr_t usual, huge;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_attr_init(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 46), 0);  // no machine has 64 TiB for it
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  LoadPlan plan;
  plan.callers = 3;
  const auto result = RunLoad(plan, [](int64_t, int) -> CallOutcome { return {}; }, {});
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("only 0 of 3 threads"));
}

TEST(LoadRunTest, StopEndsTheRunWithPartialResult) {
  for (const bool open : {true, false}) {
    LoadPlan plan = Constant(100, absl::Hours(1));
    plan.open = open;
    plan.callers = 8;
    std::stop_source stop;
    std::atomic<int64_t> made = 0;
    const LoadResult result = Ran(
        plan,
        [&](int64_t index, int) -> CallOutcome {
          ++made;
          if (index == 10) stop.request_stop();
          return {};
        },
        stop.get_token());
    EXPECT_TRUE(result.stopped);
    EXPECT_EQ(result.record.measured(), made);
    EXPECT_LT(result.record.window(), absl::Minutes(30));
    EXPECT_EQ(result.record.window(), result.elapsed);
  }
}

TEST(LoadRunTest, CallsThatWereDueBeforeAStopAreNotSent) {
  LoadPlan plan = Constant(1000, absl::Hours(1));
  plan.callers = 1;
  std::stop_source stop;
  const LoadResult result = Ran(
      plan,
      [&](int64_t, int) -> CallOutcome {
        absl::SleepFor(absl::Milliseconds(200));
        stop.request_stop();
        return {};
      },
      stop.get_token());
  EXPECT_EQ(result.record.measured(), 1);
  // 200 are due in the time of the first call, and hardly more.
  EXPECT_GE(result.record.not_sent(), 198);
  EXPECT_NEAR(static_cast<double>(result.record.offered()),
              1000 * absl::ToDoubleSeconds(result.record.window()), 5);
}

}  // namespace
}  // namespace linnet::client
