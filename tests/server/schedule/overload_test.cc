// Quotas and shedding under overload.
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "server/admission/quota.h"
#include "server/schedule/batcher.h"
#include "server/schedule/shed_policy.h"
#include "tests/support/echo_engine.h"
#include "tests/support/recording_sink.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

using Decision = Quota::Decision;

TEST(QuotaTest, SingleClientLeavesAQuarterFree) {
  Quota quota(100);
  quota.Take({.client = "a"}, 60);
  EXPECT_EQ(quota.Check({.client = "a"}, 15), Decision::kFits);
  EXPECT_EQ(quota.Check({.client = "a"}, 16), Decision::kShareUsed);
  EXPECT_EQ(quota.Check({.client = "b"}, 40), Decision::kFits) << "it holds nothing";
  EXPECT_EQ(quota.Check({.client = "b"}, 41), Decision::kFull);
}

TEST(QuotaTest, ClientThatHoldsNothingMayTakeAll) {
  Quota quota(100);
  EXPECT_EQ(quota.Check({.client = "a"}, 100), Decision::kFits);
  EXPECT_EQ(quota.Check({.client = "a"}, 101), Decision::kFull);
}

TEST(QuotaTest, ClientsHaveEqualShares) {
  Quota quota(100);
  quota.Take({.client = "a"}, 40);
  quota.Take({.client = "b"}, 1);
  EXPECT_EQ(quota.share({.client = "a"}), quota.share({.client = "b"}));
  EXPECT_EQ(quota.share({.client = "a"}), 42);
  EXPECT_EQ(quota.share({.client = "c"}), 30) << "with one more";
}

TEST(QuotaTest, NewClientFindsRoomForAThirdOfAShare) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    Quota quota(10'000);
    const int clients = 1 + static_cast<int>(random() % 8);
    for (int i = 0; i < 5000; ++i) {  // each takes all that fits, in pieces
      const std::string client(1, static_cast<char>('a' + random() % clients));
      const int64_t piece = 1 + random() % 20;
      if (quota.Check({.client = client}, piece) == Decision::kFits)
        quota.Take({.client = client}, piece);
    }
    EXPECT_EQ(quota.Check({.client = "new"}, quota.share({.client = "new"}) / 3), Decision::kFits)
        << "seed " << seed;
  }
}

TEST(QuotaTest, GivenBackAmountIsFreeAndEmptyClientsAreErased) {
  Quota quota(100);
  quota.Take({.client = "a"}, 60);
  quota.Take({.client = "b"}, 10);
  quota.GiveBack({.client = "a"}, 60);
  EXPECT_EQ(quota.held(), 10);
  EXPECT_EQ(quota.held_by({.client = "a"}), 0);
  EXPECT_EQ(quota.share({.client = "b"}), 75);
}

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);
constexpr ShedOptions kShed = {.interval = absl::Seconds(5), .max_wait = absl::Seconds(2)};

TEST(ShedPolicyTest, DoesNotShedABurst) {
  ShedPolicy policy(kShed);
  policy.Step(true, kNow);
  EXPECT_EQ(policy.max_wait(kNow + absl::Seconds(4)), absl::InfiniteDuration());
}

TEST(ShedPolicyTest, ShedsWhileTheQueueNeverEmpties) {
  ShedPolicy policy(kShed);
  for (int s = 0; s <= 6; ++s) policy.Step(true, kNow + absl::Seconds(s));
  EXPECT_EQ(policy.max_wait(kNow + absl::Seconds(6)), absl::Seconds(2));
  policy.Step(false, kNow + absl::Seconds(7));
  policy.Step(true, kNow + absl::Seconds(8));
  EXPECT_EQ(policy.max_wait(kNow + absl::Seconds(9)), absl::InfiniteDuration());
}

TEST(BatcherShedTest, ABurstAfterIdleTimeIsNotOverload) {
  test::EchoEngine engine({.rows = 1});
  Batcher batcher(engine, {.shed = kShed});
  absl::Time now = kNow;
  const auto add = [&](test::Outcome& outcome) {
    auto sequence = test::Say({5, 6}, outcome);
    ASSERT_THAT(batcher.Add(sequence, now), IsOk());
  };
  const auto step = [&] {
    now += absl::Milliseconds(900);
    return batcher.Step([&] { return now; });
  };
  test::Outcome earlier;
  add(earlier);
  while (!batcher.idle()) step();
  now += absl::Minutes(10);  // no steps
  std::vector<test::Outcome> burst(2);
  for (test::Outcome& outcome : burst) add(outcome);
  int shed = 0;
  while (!batcher.idle()) shed += step().shed;  // the second waits longer than max_wait
  EXPECT_EQ(shed, 0);
}

// While a step is made, a call comes; the next step starts it.
TEST(BatcherShedTest, CallsThatEachStepStartsAreNotOverload) {
  std::vector<test::Outcome> outcomes(20);
  test::EchoEngine engine({.rows = 64});
  Batcher batcher(engine, {.shed = {.interval = absl::Seconds(5), .max_wait = absl::Seconds(2)}});
  absl::Time now = kNow;
  for (test::Outcome& outcome : outcomes) {
    auto sequence = test::Say({5, 6, 7, 8}, outcome);
    ASSERT_THAT(batcher.Add(sequence, now), IsOk());
    now += absl::Seconds(3);  // longer than max_wait
    EXPECT_EQ(batcher.Step([&] { return now; }).shed, 0);
  }
}

TEST(ShedPolicyTest, NeverShedsByDefault) {
  ShedPolicy policy({});
  policy.Step(true, kNow);
  EXPECT_EQ(policy.max_wait(kNow + absl::Hours(1000)), absl::InfiniteDuration());
}

}  // namespace
}  // namespace linnet::server
