#include "server/admission/safety_factor.h"

#include <optional>
#include <random>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "server/admission/admission.h"
#include "server/metrics/metrics.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);
const Caller kCaller = {.client = "a"};

// The share of `count` calls with the same estimate that take longer than predicted, once the
// factor has settled.
template <typename Ratio>
double ShareLater(SafetyFactor& factor, Ratio&& ratio, int settle = 3000, int count = 20000) {
  const absl::Duration estimate = absl::Seconds(1);
  int later = 0;
  for (int i = 0; i < settle + count; ++i) {
    const absl::Duration actual = estimate * ratio();
    later += i >= settle && actual > estimate * factor.value(kNow);
    factor.RecordCompletion(estimate, actual, kNow);
  }
  return static_cast<double>(later) / count;
}

TEST(SafetyFactorTest, OneInAHundredTakesLongerForAnySpread) {
  std::mt19937 random(1);
  for (double spread : {0.05, 0.2, 0.4}) {
    SafetyFactor factor;
    std::lognormal_distribution<double> ratio(0, spread);
    const double later = ShareLater(factor, [&] { return ratio(random); });
    // By construction raises and reductions balance, except on the way to the measured part.
    EXPECT_NEAR(later, 0.01, 0.003) << spread;
    EXPECT_GT(factor.value(kNow), 1);
  }
}

TEST(SafetyFactorTest, StaysAtOneForSufficientEstimates) {
  SafetyFactor factor;
  EXPECT_EQ(factor.value(kNow), 1);
  for (int i = 0; i < 100; ++i) factor.RecordCompletion(absl::Seconds(2), absl::Seconds(1), kNow);
  EXPECT_EQ(factor.value(kNow), 1) << "never below 1";
}

TEST(SafetyFactorTest, FollowsASlowerServerAndRecovers) {
  SafetyFactor factor;
  for (int i = 0; i < 10; ++i) factor.RecordCompletion(absl::Seconds(1), absl::Seconds(2), kNow);
  EXPECT_GE(factor.value(kNow), 2);
  for (int i = 0; i < 1000; ++i) factor.RecordCompletion(absl::Seconds(1), absl::Seconds(1), kNow);
  EXPECT_LT(factor.value(kNow), 1.1);
}

TEST(SafetyFactorTest, TimeoutsRaiseTheFactorUpToItsMax) {
  SafetyFactor factor;
  factor.RecordTimeout(absl::Seconds(1), absl::Seconds(1), kNow);
  EXPECT_GT(factor.value(kNow), 1);
  for (int i = 0; i < 1000; ++i) factor.RecordTimeout(absl::Seconds(1), absl::Seconds(10), kNow);
  EXPECT_DOUBLE_EQ(factor.value(kNow), 4);
}

TEST(SafetyFactorTest, IgnoresTimeoutsBeforeThePrediction) {
  SafetyFactor factor;
  factor.RecordCompletion(absl::Seconds(1), absl::Seconds(2), kNow);
  const double before = factor.value(kNow);
  for (int i = 0; i < 1000; ++i) factor.RecordTimeout(absl::Seconds(1), absl::Seconds(1), kNow);
  EXPECT_EQ(factor.value(kNow), before) << "no evidence for either side";
}

TEST(SafetyFactorTest, OneInAHundredTakesLongerIfAllOfThoseTimeOut) {
  std::mt19937 random(2);
  std::lognormal_distribution<double> ratio(0, 0.2);
  SafetyFactor factor;
  int late = 0, let_in = 0;
  // The deadline is in one second and estimates have all lengths: a call is admitted if its
  // estimate times the factor fits.
  for (int i = 0; i < 100'000; ++i) {
    const absl::Duration estimate = absl::Seconds(random() % 1000 / 1000.0);
    if (estimate * factor.value(kNow) > absl::Seconds(1)) continue;
    const absl::Duration actual = estimate * ratio(random);
    const bool counts = i > 20'000;
    let_in += counts;
    if (actual <= absl::Seconds(1)) {
      factor.RecordCompletion(estimate, actual, kNow);
    } else {
      late += counts;
      factor.RecordTimeout(estimate, absl::Seconds(1), kNow);
    }
  }
  EXPECT_LT(late, 0.01 * let_in);
  EXPECT_GT(factor.value(kNow), 1.3) << "99 of 100 of these draws are below 1.59";
}

TEST(SafetyFactorTest, DecaysOnlyWithoutFinishedCalls) {
  SafetyFactor factor;
  for (int i = 0; i < 100; ++i) factor.RecordTimeout(absl::Seconds(1), absl::Seconds(10), kNow);
  EXPECT_DOUBLE_EQ(factor.value(kNow + absl::Seconds(10)), 4);
  EXPECT_NEAR(factor.value(kNow + absl::Seconds(40)), 2, 1e-6);
  EXPECT_LT(factor.value(kNow + absl::Minutes(5)), 1.01);
  SafetyFactor fresh;
  for (int second = 0; second < 1000; ++second) {
    // One in a hundred takes longer.
    const absl::Duration actual = absl::Seconds(second % 100 == 0 ? 3 : 1);
    fresh.RecordCompletion(absl::Seconds(1), actual, kNow + absl::Seconds(second));
  }
  SafetyFactor at_once;
  for (int i = 0; i < 1000; ++i)
    at_once.RecordCompletion(absl::Seconds(1), absl::Seconds(i % 100 == 0 ? 3 : 1), kNow);
  EXPECT_DOUBLE_EQ(fresh.value(kNow + absl::Seconds(999)), at_once.value(kNow));
}

TEST(SafetyFactorTest, IgnoresVeryShortCalls) {
  SafetyFactor factor;
  factor.RecordCompletion(absl::Milliseconds(10), absl::Seconds(1), kNow);
  EXPECT_EQ(factor.value(kNow), 1);
}

// An engine of two rows that finishes 200 tokens of work per second, with one call admitted.
class AdmissionSafetyFactorTest : public ::testing::Test {
 protected:
  AdmissionSafetyFactorTest() {
    Step("en-de");
    auto running = admission_.Enter(kCaller, 10);
    EXPECT_THAT(running->Charge({.model = "en-de", .size = {1, 1, 1}}, kNow), IsOk());
    running_.emplace(*std::move(running));
  }
  void Step(const std::string& model) {
    admission_.StepMade(model,
                        {.rows = 2,
                         .finished_tokens = 1,
                         .finished_steps = 1,
                         .rows_limit = 2,
                         .stepped = true,
                         .ended = kNow},
                        absl::Milliseconds(10));
  }
  // Admits a call with an estimate of 1.4 s and this much time before its deadline.
  absl::StatusOr<Permit> Call(absl::Duration time) {
    absl::StatusOr<Permit> permit = admission_.Enter(kCaller, 10);
    const CallWork work = {.model = "en-de",
                           .size = {.tokens = 140, .longest = 140, .rows = 1},
                           .deadline = kNow + time};
    if (absl::Status status = permit->Charge(work, kNow); !status.ok()) return status;
    return permit;
  }

  Metrics metrics_;
  Admission admission_{{}, metrics_};
  std::optional<Permit> running_;
};

TEST_F(AdmissionSafetyFactorTest, LateCallRaisesTimeNeededByTheNext) {
  {
    auto permit = Call(absl::Milliseconds(1450));
    ASSERT_THAT(permit, IsOk());
    permit->Ended(kNow + absl::Seconds(2), /*finished=*/true);
  }
  EXPECT_THAT(Call(absl::Milliseconds(1450)), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(Call(absl::Milliseconds(1650)), IsOk());
}

TEST_F(AdmissionSafetyFactorTest, OtherEndsDoNotRaiseTimeNeeded) {
  Call(absl::Milliseconds(1450))->Ended(kNow + absl::Milliseconds(900), /*finished=*/true);
  Call(absl::Milliseconds(1450)).IgnoreError();  // failed: Ended is not called
  // Cancelled before the predicted time.
  Call(absl::Milliseconds(1450))->Ended(kNow + absl::Milliseconds(900), /*finished=*/false);
  EXPECT_THAT(Call(absl::Milliseconds(1450)), IsOk());
}

TEST_F(AdmissionSafetyFactorTest, ModelsHaveSeparateFactors) {
  Call(absl::Milliseconds(1450))->Ended(kNow + absl::Seconds(9), /*finished=*/false);
  Step("other");
  auto permit = admission_.Enter(kCaller, 10);
  EXPECT_THAT(permit->Charge({.model = "other",
                              .size = {.tokens = 140, .longest = 140, .rows = 1},
                              .deadline = kNow + absl::Milliseconds(1450)},
                             kNow),
              IsOk());
}

}  // namespace
}  // namespace linnet::server
