// The plain parts of what happens when there is more to do than can be done: quotas, shedding, and
// the estimate of when a call would be done.
#include <random>

#include "gmock/gmock.h"
#include "server/schedule/quota.h"
#include "server/schedule/shed_policy.h"
#include "server/schedule/workload.h"

namespace linnet::server {
namespace {

using Answer = Quota::Answer;

TEST(QuotaTest, AClientAloneLeavesAQuarterToWhoeverComes) {
  Quota quota(100);
  quota.Take("a", 60);
  EXPECT_EQ(quota.Ask("a", 15), Answer::kFits);
  EXPECT_EQ(quota.Ask("a", 16), Answer::kShareUsed);
  EXPECT_EQ(quota.Ask("b", 40), Answer::kFits) << "it holds nothing";
  EXPECT_EQ(quota.Ask("b", 41), Answer::kFull);
}

TEST(QuotaTest, WhoeverHoldsNothingMayTakeAllThereIs) {
  Quota quota(100);
  EXPECT_EQ(quota.Ask("a", 100), Answer::kFits);
  EXPECT_EQ(quota.Ask("a", 101), Answer::kFull);
}

TEST(QuotaTest, SeveralHaveTheSame) {
  Quota quota(100);
  quota.Take("a", 40);
  quota.Take("b", 1);
  EXPECT_EQ(quota.share("a"), quota.share("b"));
  EXPECT_EQ(quota.share("a"), 42);
  EXPECT_EQ(quota.share("c"), 30) << "with one more";
}

TEST(QuotaTest, HoweverGreedySomeAreANewcomerFindsRoomForAThirdOfAShare) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    Quota quota(10'000);
    const int clients = 1 + static_cast<int>(random() % 8);
    for (int i = 0; i < 5000; ++i) {  // each takes whatever it is given, in pieces
      const std::string client(1, static_cast<char>('a' + random() % clients));
      const int64_t piece = 1 + random() % 20;
      if (quota.Ask(client, piece) == Answer::kFits) quota.Take(client, piece);
    }
    EXPECT_EQ(quota.Ask("newcomer", quota.share("newcomer") / 3), Answer::kFits) << "seed " << seed;
  }
}

TEST(QuotaTest, WhatIsGivenBackIsFreeAndWhoHoldsNothingIsForgotten) {
  Quota quota(100);
  quota.Take("a", 60);
  quota.Take("b", 10);
  quota.GiveBack("a", 60);
  EXPECT_EQ(quota.held(), 10);
  EXPECT_EQ(quota.held_by("a"), 0);
  EXPECT_EQ(quota.share("b"), 75);
}

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);
constexpr ShedOptions kShed = {.interval = absl::Seconds(5), .most_wait = absl::Seconds(2)};

TEST(ShedPolicyTest, ABurstIsWaitedOut) {
  ShedPolicy policy(kShed);
  policy.Step(true, kNow);
  EXPECT_EQ(policy.most_wait(kNow + absl::Seconds(4)), absl::InfiniteDuration());
}

TEST(ShedPolicyTest, ALineThatNeverEndsIsKeptShortUntilItDoes) {
  ShedPolicy policy(kShed);
  for (int s = 0; s <= 6; ++s) policy.Step(true, kNow + absl::Seconds(s));
  EXPECT_EQ(policy.most_wait(kNow + absl::Seconds(6)), absl::Seconds(2));
  policy.Step(false, kNow + absl::Seconds(7));
  policy.Step(true, kNow + absl::Seconds(8));
  EXPECT_EQ(policy.most_wait(kNow + absl::Seconds(9)), absl::InfiniteDuration());
}

TEST(ShedPolicyTest, ByDefaultNobodyIsSentAway) {
  ShedPolicy policy({});
  policy.Step(true, kNow);
  EXPECT_EQ(policy.most_wait(kNow + absl::Hours(1000)), absl::InfiniteDuration());
}

// A full engine that finishes 1000 tokens of work in a second, with sequences of 50 tokens that
// take half a second each.
StepReport FullSecond() {
  return {.waiting = 1,
          .full = true,
          .work = 800,
          .finished_work = 1000,
          .finished_tokens = 50,
          .finished_time = absl::Milliseconds(500)};
}

struct WorkloadTest : ::testing::Test {
  void Full(int seconds = 3) {
    for (int s = 0; s < seconds; ++s) workload.StepMade(FullSecond(), absl::Seconds(1));
  }
  // Without `longest`, what a call waits.
  double Estimate(const Caller& caller, int64_t tokens, int64_t longest = 0) {
    return absl::ToDoubleSeconds(workload.TimeToFinish(caller, tokens, longest).time);
  }

  const Caller a{.client = "a"}, b{.client = "b"}, urgent{"u", Priority::kInteractive};
  Workload workload;
};

TEST_F(WorkloadTest, NothingIsKnownAtFirst) {
  workload.Add(a, 1 << 30);
  EXPECT_EQ(Estimate(b, 1000, 1000), 0);
  workload.StepMade(FullSecond(), absl::Milliseconds(500));
  EXPECT_EQ(workload.TimeFor(1000), absl::ZeroDuration()) << "half a second is no evidence";
  EXPECT_EQ(Estimate(b, 1000, 1000), 0) << "nor is what it takes alone, where many wait";
}

TEST_F(WorkloadTest, WhileThereArePlacesACallTakesAsLongAsItsLongestSequence) {
  Full();
  workload.StepMade({.waiting = 0}, absl::Milliseconds(1));
  workload.Add(a, 300);
  EXPECT_NEAR(Estimate(b, 500, 200), 2, 1e-6) << "10 ms a token";
}

TEST_F(WorkloadTest, WhoFindsMoreLetInThanThereArePlacesForWaitsThoughNobodyDidInTheLastStep) {
  Full();
  workload.StepMade({.waiting = 0}, absl::Milliseconds(1));
  workload.Add(a, 5000);
  EXPECT_GT(workload.TimeToFinish(a, 500, 200).wait, absl::Seconds(4));
  EXPECT_NEAR(Estimate(a, 500, 200), 5 + 2, 0.01);
}

TEST_F(WorkloadTest, ItsOwnTimeComesOnTopOfItsWait) {
  Full();
  workload.Add(a, 7000);
  EXPECT_NEAR(Estimate(a, 1000, 200), 7 + 2, 0.01);
  EXPECT_NEAR(Estimate(a, 3000, 200), 10, 0.01) << "it is more than one sequence";
}

TEST_F(WorkloadTest, ItsOwnClientsWorkGoesBeforeIt) {
  Full();
  workload.Add(a, 7000);
  EXPECT_NEAR(Estimate(a, 1000), 8, 0.01);
}

TEST_F(WorkloadTest, OfOthersGoesBeforeItAsMuchAsItHasItselfAndNoMoreThanThereIs) {
  Full();
  workload.Add(a, 7000);
  EXPECT_NEAR(Estimate(b, 1000), 2, 0.01);
  Full(30);  // in which nothing more has come
  EXPECT_NEAR(Estimate(b, 1000), 2, 0.01);
  EXPECT_NEAR(Estimate(b, 100'000), 107, 0.1);
}

TEST_F(WorkloadTest, AQuarterOfItsTimeIsNotForWaiting) {
  Full();
  workload.Add(a, 6000);
  const auto needed = [&](int64_t longest) {
    return absl::ToDoubleSeconds(workload.TimeNeeded(workload.TimeToFinish(a, 1000, longest)));
  };
  EXPECT_NEAR(needed(10), 8, 0.01) << "6 are waited";
  EXPECT_NEAR(needed(190), 8, 0.01);
  EXPECT_NEAR(needed(300), 9, 0.01);
}

TEST_F(WorkloadTest, WhatOthersGoOnSendingGoesBeforeItAsWell) {
  // Each second the engine does 1000, and 250 come.
  for (int turn = 0; turn < 300; ++turn) {
    workload.Add(a, 25);
    workload.StepMade({.waiting = 1, .finished_work = 100}, absl::Milliseconds(100));
    workload.Remove(a, 25);
  }
  // T = 3 + T / 4.
  EXPECT_NEAR(Estimate(b, 3000), 4, 0.1);
  EXPECT_NEAR(Estimate(b, 100), 0.1 + 0.1 / 3, 0.01);
  // However much comes, it has its share.
  workload.Add(a, 50'000);
  EXPECT_NEAR(Estimate(b, 3000), 6, 0.1);
}

TEST_F(WorkloadTest, TheUrgentWaitForLess) {
  Full();
  workload.Add(a, 70'000);
  EXPECT_NEAR(Estimate(urgent, 1000), 1.25, 0.01) << "4 to 16";
  workload.Add(urgent, 70'000);
  EXPECT_NEAR(Estimate(b, 1000), 1 + 1 + 4, 0.01);
}

TEST_F(WorkloadTest, WhatHasEndedIsForgotten) {
  Full();
  workload.Add(a, 7000);
  workload.Add(b, 500);
  workload.Remove(a, 6000);
  EXPECT_EQ(workload.tokens(), 1500);
  Full(30);
  EXPECT_NEAR(Estimate(a, 1000), 2.5, 0.01);
  workload.Remove(a, 1000);
  workload.Remove(b, 500);
  EXPECT_EQ(workload.tokens(), 0);
  EXPECT_NEAR(Estimate(a, 1000), 1, 0.01);
}

TEST_F(WorkloadTest, TheSpeedIsThatOfTheLastHalfMinuteAndOnlyOfAFullEngine) {
  Full(100);
  for (int s = 0; s < 60; ++s) workload.StepMade({.waiting = 0}, absl::Seconds(1));  // idle
  EXPECT_NEAR(absl::ToDoubleSeconds(workload.TimeFor(1000)), 1, 0.01);
  StepReport faster = FullSecond();
  faster.finished_work = 4000;
  for (int s = 0; s < 30; ++s) workload.StepMade(faster, absl::Seconds(1));
  EXPECT_NEAR(absl::ToDoubleSeconds(workload.TimeFor(1000)), 0.27, 0.03);
}

}  // namespace
}  // namespace linnet::server
