#include "server/schedule/step_cost.h"

#include <random>

#include "gmock/gmock.h"
#include "server/admission/probe_policy.h"

namespace linnet::server {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);

struct StepCostTest : ::testing::Test {
  // Records consecutive steps with the given number of rows.
  void Steps(int count, int rows, double milliseconds) {
    const absl::Duration step = absl::Milliseconds(milliseconds);
    for (int i = 0; i < count; ++i) cost.Record(rows, step, now += step);
  }
  double Of(double rows) const { return absl::ToDoubleMilliseconds(cost.Of(rows)); }

  absl::Time now = kNow;
  StepCost cost;
};

TEST_F(StepCostTest, EstimateIsZeroBeforeTheFirstStep) { EXPECT_EQ(Of(1), 0); }

TEST_F(StepCostTest, InterpolatesBetweenKnownRows) {
  Steps(10, 10, 2);
  Steps(10, 100, 11);
  EXPECT_NEAR(Of(10), 2, 1e-9);
  EXPECT_NEAR(Of(100), 11, 1e-9);
  EXPECT_NEAR(Of(50), 6, 1e-9);
}

TEST_F(StepCostTest, OverestimatesBeyondKnownRows) {
  Steps(10, 10, 2);
  EXPECT_NEAR(Of(1), 2, 1e-9);
  EXPECT_NEAR(Of(40), 8, 1e-9);
}

TEST_F(StepCostTest, FullStepsDoNotChangeTheCostOfSmallOnes) {
  Steps(10, 5, 1);
  Steps(100'000, 160, 10);
  EXPECT_NEAR(Of(5), 1, 1e-9);
}

TEST_F(StepCostTest, FollowsAMachineThatChangesSpeed) {
  Steps(10'000, 5, 1);
  Steps(500, 5, 3);
  EXPECT_NEAR(Of(5), 3, 0.3);
  Steps(500, 5, 1);
  EXPECT_NEAR(Of(5), 1, 0.3);
}

TEST_F(StepCostTest, SpeedChangeAppliesToAllStepSizes) {
  Steps(1000, 5, 10);
  Steps(1000, 10, 12);
  Steps(1000, 100, 40);
  now += absl::Seconds(60);
  Steps(100, 5, 1);
  EXPECT_NEAR(Of(5), 1, 0.1);
  EXPECT_NEAR(Of(10), 1.2, 0.2);
  EXPECT_NEAR(Of(100), 4, 0.6);
}

TEST_F(StepCostTest, OldShapeIsKeptAndNextStepSetsTheScale) {
  Steps(10'000, 5, 8);
  now += absl::Hours(100);
  EXPECT_NEAR(Of(5), 8, 1e-9);
  Steps(1, 5, 1);
  EXPECT_NEAR(Of(5), 1, 1e-9);
}

TEST_F(StepCostTest, CapsTheCostOfAStalledStep) {
  Steps(50, 5, 1);
  Steps(1, 5, 5000);
  EXPECT_LT(Of(5), 1.5);
  Steps(200, 5, 1);
  EXPECT_LT(Of(5), 1.1);
}

TEST_F(StepCostTest, StepsOfOtherSizesBoundTheCost) {
  Steps(50, 5, 1);
  Steps(50, 80, 2);
  Steps(1, 20, 1000);  // the machine had no time for it
  EXPECT_NEAR(Of(20), 2, 1e-9) << "no more than steps of more rows";
  Steps(1, 320, 1000);
  EXPECT_NEAR(Of(320), 8, 1e-9) << "no more per row than steps of fewer";
}

TEST_F(StepCostTest, IgnoresStepsOfZeroDuration) {
  Steps(10, 5, 0);
  EXPECT_EQ(Of(5), 0);
  Steps(10, 5, 2);
  EXPECT_NEAR(Of(5), 2, 1e-9);
}

TEST_F(StepCostTest, ClockSetBackDoesNotDecayTheScale) {
  Steps(50, 5, 1);
  now -= absl::Hours(1);
  Steps(50, 5, 1);
  EXPECT_NEAR(Of(5), 1, 1e-9);
}

// Learns cost = 2 ms + 0.05 ms per row from noisy steps with random numbers of rows.
TEST_F(StepCostTest, LearnsALinearCostModel) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> noise(0.7, 1.3);
  for (int i = 0; i < 50'000; ++i) {
    const int rows = 1 + static_cast<int>(random() % 160);
    Steps(1, rows, noise(random) * (2 + 0.05 * rows));
  }
  for (const int rows : {1, 5, 12, 40, 100, 150})
    EXPECT_NEAR(Of(rows) / (2 + 0.05 * rows), 1, 0.05) << rows;
}

TEST(ProbePolicyTest, ProbesTakeATenthOfTheEngineTime) {
  ProbePolicy probes;
  int admitted = 0;
  for (int i = 0; i < 100'000; ++i)
    admitted += probes.Admit(kNow + absl::Milliseconds(i), absl::Milliseconds(60));
  // The first four come after pauses of 1, 2, 4 and 8 times 60 ms.
  EXPECT_EQ(admitted, 4 + (100'000 - 900 + 599) / 600);
}

TEST(ProbePolicyTest, FirstCallIsAProbeUnlessExpired) {
  ProbePolicy probes;
  EXPECT_FALSE(probes.Admit(kNow, absl::ZeroDuration()));
  EXPECT_FALSE(probes.Admit(kNow, -absl::Seconds(1)));
  EXPECT_TRUE(probes.Admit(kNow, absl::Nanoseconds(1)));
  EXPECT_FALSE(probes.Admit(kNow + absl::Milliseconds(9), absl::Nanoseconds(1)));
  EXPECT_TRUE(probes.Admit(kNow + absl::Milliseconds(10), absl::Nanoseconds(1)));
}

TEST(ProbePolicyTest, AnswerEndsThePause) {
  ProbePolicy probes;
  const absl::Duration cost = absl::Minutes(5);
  EXPECT_TRUE(probes.Admit(kNow, cost));
  EXPECT_TRUE(probes.Admit(kNow + cost, cost));
  EXPECT_FALSE(probes.Admit(kNow + 2 * cost, cost));
  probes.Answered();
  EXPECT_TRUE(probes.Admit(kNow + 2 * cost, cost));
  EXPECT_TRUE(probes.Admit(kNow + 3 * cost, cost)) << "the pause begins anew";
}

TEST(ProbePolicyTest, ClockSetBackEndsThePause) {
  ProbePolicy probes;
  EXPECT_TRUE(probes.Admit(kNow, absl::Hours(1)));
  EXPECT_TRUE(probes.Admit(kNow - absl::Hours(9), absl::Hours(1)));
}

}  // namespace
}  // namespace linnet::server
