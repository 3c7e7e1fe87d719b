// Shedding under overload.
#include <vector>

#include "gmock/gmock.h"
#include "server/schedule/batcher.h"
#include "server/schedule/shed_policy.h"
#include "tests/support/echo_engine.h"
#include "tests/support/recording_sink.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

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

TEST(ShedPolicyTest, ShedsNoQueueThatIsWorkedOff) {
  // After a burst of 1,000 calls, 100 start each second while so many others come.
  const auto sheds = [](int come) {
    ShedPolicy policy(kShed);
    for (int i = 0; i < 1000; ++i) policy.Arrived();
    absl::Time now = kNow;
    for (int step = 0; step < 900; ++step) {
      now += absl::Milliseconds(10);
      policy.Started();
      if (step * come / 100 < (step + 1) * come / 100) policy.Arrived();
      policy.Step(true, now);
    }
    return policy.max_wait(now) < absl::InfiniteDuration();
  };
  EXPECT_FALSE(sheds(0));
  EXPECT_FALSE(sheds(50));
  EXPECT_TRUE(sheds(90));
  EXPECT_TRUE(sheds(200));
}

TEST(BatcherShedTest, CallsOfABurstAreAllAnswered) {
  std::vector<test::Outcome> burst(30);
  test::EchoEngine engine({.rows = 1});
  Batcher batcher(engine, {.shed = kShed});
  absl::Time now = kNow;
  for (test::Outcome& outcome : burst) {
    auto sequence = test::Say({5, 6}, outcome);
    ASSERT_THAT(batcher.Add(sequence, now), IsOk());
  }
  int shed = 0;
  while (!batcher.idle()) {
    now += absl::Milliseconds(100);
    shed += batcher.Step([&] { return now; }).shed;
  }
  EXPECT_EQ(shed, 0);
  EXPECT_GT(now, kNow + absl::Seconds(8));
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
