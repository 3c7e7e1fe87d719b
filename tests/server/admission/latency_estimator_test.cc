#include "server/admission/latency_estimator.h"

#include <string>

#include "gmock/gmock.h"

namespace linnet::server {
namespace {

// An engine of ten rows. A full step takes 10 ms, so it finishes 1000 tokens of work per second,
// and a sequence of 50 tokens takes half a second.
constexpr int kRows = 10;

struct LatencyEstimatorTest : ::testing::Test {
  StepReport Step(int rows) {
    return {.rows = rows, .rows_limit = kRows, .stepped = true, .ended = now};
  }
  void Full(int seconds = 3, absl::Duration step = absl::Milliseconds(10)) {
    for (absl::Time end = now + absl::Seconds(seconds); now < end;) {
      now += step;
      StepReport report = Step(kRows);
      report.waiting = 1;
      report.full = true;
      report.finished_tokens = report.finished_steps = 1;
      estimator.StepMade(report, step);
    }
  }
  // Estimate for a call of one row. Without `longest`, its wait.
  double Seconds(const Caller& caller, int64_t tokens, int64_t longest = 0) {
    return absl::ToDoubleSeconds(
        estimator.TimeToFinish(caller, {.tokens = tokens, .longest = longest, .rows = 1}).time);
  }
  // Adds work that fills the engine several times.
  void Add(const Caller& caller, int64_t tokens) { estimator.Add(caller, tokens, 2 * kRows); }
  void Remove(const Caller& caller, int64_t tokens) { estimator.Remove(caller, tokens, 0); }

  const Caller a{.client = "a"}, b{.client = "b"}, urgent{"u", Priority::kInteractive};
  absl::Time now = absl::FromUnixSeconds(1'000'000);
  LatencyEstimator estimator;
};

TEST_F(LatencyEstimatorTest, EstimateIsZeroBeforeTheFirstStep) {
  Add(a, 1 << 30);
  EXPECT_EQ(Seconds(b, 1000, 1000), 0);
  EXPECT_EQ(estimator.TimeFor(1000), absl::ZeroDuration());
}

TEST_F(LatencyEstimatorTest, OneStepSufficesToBoundABurst) {
  estimator.StepMade(Step(2), absl::Milliseconds(4));
  // 10 rows: 20 ms per step, an overestimate; one step per token.
  EXPECT_NEAR(absl::ToDoubleSeconds(estimator.TimeFor(1000)), 2, 1e-6);
  Add(a, 1'000'000);
  EXPECT_NEAR(Seconds(a, 1000, 50), 2002, 1);
}

TEST_F(LatencyEstimatorTest, WithFreeRowsTimeIsThatOfTheLongestSequence) {
  Full();
  estimator.Add(a, 300, 3);
  EXPECT_NEAR(Seconds(b, 500, 200), 2, 1e-6) << "10 ms a token";
}

TEST_F(LatencyEstimatorTest, SingleCallUsesStepCostOfItsOwnRows) {
  estimator.StepMade(Step(1), absl::Milliseconds(1));
  Full(/*seconds=*/60);
  EXPECT_NEAR(Seconds(b, 100, 100), 0.1, 1e-6);
  estimator.Add(a, 300, 9);
  EXPECT_NEAR(Seconds(b, 100, 100), 1, 1e-6) << "in a batch with nine other rows";
  estimator.Remove(a, 300, 9);
  EXPECT_NEAR(Seconds(b, 100, 100), 0.1, 1e-6);
}

TEST_F(LatencyEstimatorTest, TimeWhenIdleIgnoresAdmittedWork) {
  estimator.StepMade(Step(1), absl::Milliseconds(1));
  Full();
  Add(a, 70'000);
  const CallSize call{.tokens = 100, .longest = 100, .rows = 1};
  EXPECT_EQ(estimator.TimeWhenIdle(call).time, absl::Milliseconds(100));
  EXPECT_FALSE(estimator.TimeWhenIdle(call).waits);
  // A call with more rows than the engine has.
  const CallSize large{.tokens = 5000, .longest = 100, .rows = 50};
  EXPECT_NEAR(absl::ToDoubleSeconds(estimator.TimeWhenIdle(large).time), 5, 1e-6);
  EXPECT_TRUE(estimator.TimeWhenIdle(large).waits);
}

TEST_F(LatencyEstimatorTest, CallWaitsWithoutFreeRows) {
  Full();
  Add(a, 5000);
  EXPECT_GT(estimator.TimeToFinish(a, {.tokens = 500, .longest = 200, .rows = 1}).wait,
            absl::Seconds(4));
  EXPECT_NEAR(Seconds(a, 500, 200), 5 + 2, 0.01);
}

TEST_F(LatencyEstimatorTest, FullEncoderCacheReducesCapacity) {
  StepReport report = Step(4);
  report.full = true;
  for (int i = 0; i < 10; ++i) estimator.StepMade(report, absl::Milliseconds(10));
  estimator.Add(a, 500, 4);
  const CallSize call{.tokens = 100, .longest = 100, .rows = 1};
  EXPECT_TRUE(estimator.TimeToFinish(a, call).waits);
  // Until a step uses more rows again.
  for (int i = 0; i < 1000; ++i) estimator.StepMade(Step(9), absl::Milliseconds(10));
  EXPECT_FALSE(estimator.TimeToFinish(a, call).waits);
}

TEST_F(LatencyEstimatorTest, AddsOwnTimeToWait) {
  Full();
  Add(a, 7000);
  EXPECT_NEAR(Seconds(a, 1000, 200), 7 + 2, 0.01);
  EXPECT_NEAR(Seconds(a, 3000, 200), 10, 0.01) << "it is more than one sequence";
}

TEST_F(LatencyEstimatorTest, WaitsForEarlierWorkOfTheSameClient) {
  Full();
  Add(a, 7000);
  EXPECT_NEAR(Seconds(a, 1000), 8, 0.01);
}

TEST_F(LatencyEstimatorTest, WaitsForOtherClientsOnlyForAFairShare) {
  Full();
  Add(a, 7000);
  EXPECT_NEAR(Seconds(b, 1000), 2, 0.01);
  Full(30);  // in which nothing more has come
  EXPECT_NEAR(Seconds(b, 1000), 2, 0.01);
  EXPECT_NEAR(Seconds(b, 100'000), 107, 0.1);
}

TEST_F(LatencyEstimatorTest, IdsOfAnotherClientDoNotChangeTheWait) {
  Full();
  for (int i = 0; i < 70; ++i) Add({.client = "a", .id = std::to_string(i)}, 100);
  EXPECT_NEAR(Seconds(b, 1000), 2, 0.01);
  Full(30);  // in which nothing more has come
  EXPECT_NEAR(Seconds(b, 1000), 2, 0.01);
  EXPECT_NEAR(Seconds(b, 100'000), 107, 0.1);
}

TEST_F(LatencyEstimatorTest, WaitsForFairSharesOfOtherIdsAndOtherClients) {
  Full();
  const Caller x{.client = "a", .id = "x"}, y{.client = "a", .id = "y"};
  Add(x, 7000);
  EXPECT_NEAR(Seconds(y, 1000), 2, 0.01);
  Add(b, 7000);
  EXPECT_NEAR(Seconds(y, 1000), 4, 0.01) << "two of them have half, one of them a quarter";
  Full(30);
  EXPECT_NEAR(Seconds(b, 1000), 8 + 7, 0.1) << "its own 7000 go before it";
}

TEST_F(LatencyEstimatorTest, TimeNeededReservesAQuarterForDecoding) {
  Full();
  Add(a, 6000);
  const auto needed = [&](int64_t longest) {
    const Estimate estimate =
        estimator.TimeToFinish(a, {.tokens = 1000, .longest = longest, .rows = 1});
    return absl::ToDoubleSeconds(estimator.TimeNeeded(estimate, now));
  };
  EXPECT_NEAR(needed(10), 8, 0.01) << "6 are waited";
  EXPECT_NEAR(needed(190), 8, 0.01);
  EXPECT_NEAR(needed(300), 9, 0.01);
}

TEST_F(LatencyEstimatorTest, CountsFutureArrivalsOfOtherClients) {
  Full();
  Add(b, 0);
  // Each second the engine does 1000, and 250 come.
  for (int turn = 0; turn < 3000; ++turn) {
    if (turn % 10 == 0) estimator.Add(a, 25, 0);
    estimator.StepMade(Step(kRows), absl::Milliseconds(10));
    if (turn % 10 == 0) estimator.Remove(a, 25, 0);
  }
  Add(b, 0);
  // T = 3 + T / 4.
  EXPECT_NEAR(Seconds(b, 3000), 4, 0.1);
  EXPECT_NEAR(Seconds(b, 100), 0.1 + 0.1 / 3, 0.01);
  // The client gets its share for any number of arriving tokens.
  Add(a, 50'000);
  EXPECT_NEAR(Seconds(b, 3000), 6, 0.1);
}

TEST_F(LatencyEstimatorTest, ManyIdsLeaveFewFlowsAndTheRateOfTheirClient) {
  Full();
  Add(b, 0);
  // Each second the engine does 1000, and 200 come, each two of an id of their own.
  for (int turn = 0; turn < 3000; ++turn) {
    const Caller one{.client = "a", .id = std::to_string(turn)};
    estimator.Add(one, 2, 0);
    estimator.StepMade(Step(kRows), absl::Milliseconds(10));
    estimator.Remove(one, 2, 0);
    ASSERT_LE(estimator.flows(), 257);
  }
  Add(b, 0);
  // T = 3 + T / 5. Ids that are known count twice, because each is taken for a flow that has just
  // begun.
  EXPECT_GT(Seconds(b, 3000), 3.7);
  EXPECT_LT(Seconds(b, 3000), 5.1);
}

TEST_F(LatencyEstimatorTest, CallsThatEndBeforeAStepLeaveFewFlows) {
  Full();
  for (int call = 0; call < 3000; ++call) {
    const Caller one{.client = std::to_string(call % 7), .id = std::to_string(call)};
    const Caller other{.client = std::to_string(call)};
    for (const Caller& caller : {one, other}) {
      estimator.Add(caller, 2, 1);
      estimator.Remove(caller, 2, 1);
    }
  }
  EXPECT_LE(estimator.flows(), 256);
  for (int call = 0; call < 3000; ++call) Add({.client = "a", .id = std::to_string(call)}, 1);
  EXPECT_GE(estimator.flows(), 3000) << "flows with work are kept";
  for (int call = 0; call < 3000; ++call) Remove({.client = "a", .id = std::to_string(call)}, 1);
  EXPECT_LE(estimator.flows(), 256);
}

TEST_F(LatencyEstimatorTest, HigherPriorityWaitsLess) {
  Full();
  Add(a, 70'000);
  EXPECT_NEAR(Seconds(urgent, 1000), 1.25, 0.01) << "4 to 16";
  Add(urgent, 70'000);
  EXPECT_NEAR(Seconds(b, 1000), 1 + 1 + 4, 0.01);
}

TEST_F(LatencyEstimatorTest, RemovesWorkThatHasEnded) {
  Full();
  Add(a, 7000);
  Add(b, 500);
  Remove(a, 6000);
  EXPECT_EQ(estimator.tokens(), 1500);
  Full(30);
  EXPECT_NEAR(Seconds(a, 1000), 2.5, 0.01);
  Remove(a, 1000);
  Remove(b, 500);
  EXPECT_EQ(estimator.tokens(), 0);
  EXPECT_TRUE(estimator.idle());
  EXPECT_NEAR(Seconds(a, 1000, 100), 1, 0.01) << "it has its rows at once";
}

TEST_F(LatencyEstimatorTest, SpeedFollowsRecentFullSteps) {
  Full(100);
  for (int s = 0; s < 6000; ++s) estimator.StepMade(Step(1), absl::Milliseconds(1));
  EXPECT_NEAR(absl::ToDoubleSeconds(estimator.TimeFor(1000)), 1, 0.01);
  Full(30, absl::Milliseconds(2.5));
  EXPECT_NEAR(absl::ToDoubleSeconds(estimator.TimeFor(1000)), 0.27, 0.05);
}

TEST_F(LatencyEstimatorTest, IgnoresReportsWithoutAStep) {
  Full();
  estimator.StepMade({}, absl::Seconds(100));
  EXPECT_NEAR(absl::ToDoubleSeconds(estimator.TimeFor(1000)), 1, 1e-6);
}

}  // namespace
}  // namespace linnet::server
