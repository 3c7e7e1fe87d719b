#include "server/schedule/margin.h"

#include <random>

#include "gmock/gmock.h"
#include "server/metrics.h"
#include "server/schedule/admission.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);
const Caller kCaller = {.client = "a"};

// The share of `count` things, each expected to take `estimate`, that take longer than the margin
// says, once it has settled.
template <typename Ratio>
double ShareLater(Margin& margin, Ratio&& ratio, int settle = 3000, int count = 20000) {
  const absl::Duration estimate = absl::Seconds(1);
  int later = 0;
  for (int i = 0; i < settle + count; ++i) {
    const absl::Duration actual = estimate * ratio();
    later += i >= settle && actual > estimate * margin.ratio();
    margin.Took(estimate, actual);
  }
  return static_cast<double>(later) / count;
}

TEST(MarginTest, OneInAHundredTakesLongerWhateverTheSpread) {
  std::mt19937 random(1);
  for (double spread : {0.05, 0.2, 0.4}) {
    Margin margin;
    std::lognormal_distribution<double> ratio(0, spread);
    const double later = ShareLater(margin, [&] { return ratio(random); });
    // By construction steps up and down even out: only the way into the measured stretch is left.
    EXPECT_NEAR(later, 0.01, 0.003) << spread;
    EXPECT_GT(margin.ratio(), 1);
  }
}

TEST(MarginTest, EstimatesThatAreLongEnoughAreNotMadeLonger) {
  Margin margin;
  EXPECT_EQ(margin.ratio(), 1);
  for (int i = 0; i < 100; ++i) margin.Took(absl::Seconds(2), absl::Seconds(1));
  EXPECT_EQ(margin.ratio(), 1) << "and not shorter";
}

TEST(MarginTest, ItFollowsAServerThatBecomesSlowerAndForgetsThat) {
  Margin margin;
  for (int i = 0; i < 10; ++i) margin.Took(absl::Seconds(1), absl::Seconds(2));
  EXPECT_GE(margin.ratio(), 2);
  for (int i = 0; i < 1000; ++i) margin.Took(absl::Seconds(1), absl::Seconds(1));
  EXPECT_LT(margin.ratio(), 1.1);
}

TEST(MarginTest, WhatWasCutOffTookLongerAndTheMarginStaysWithinReason) {
  Margin margin;
  margin.CutOff(absl::Seconds(1), absl::Seconds(1));
  EXPECT_GT(margin.ratio(), 1);
  for (int i = 0; i < 1000; ++i) margin.CutOff(absl::Seconds(1), absl::Seconds(10));
  EXPECT_DOUBLE_EQ(margin.ratio(), 4);
}

TEST(MarginTest, WhatWasCutOffBeforeItsTimeTeachesNothing) {
  Margin margin;
  margin.Took(absl::Seconds(1), absl::Seconds(2));
  const double before = margin.ratio();
  for (int i = 0; i < 1000; ++i) margin.CutOff(absl::Seconds(1), absl::Seconds(1));
  EXPECT_EQ(margin.ratio(), before) << "neither that it is too short nor that it is long enough";
}

TEST(MarginTest, OneInAHundredTakesLongerThoughAllOfThoseAreCutOff) {
  std::mt19937 random(2);
  std::lognormal_distribution<double> ratio(0, 0.2);
  Margin margin;
  int late = 0, let_in = 0;
  // The deadline is in a second, and estimates are of all lengths: let in is what can be expected
  // to keep to it.
  for (int i = 0; i < 100'000; ++i) {
    const absl::Duration estimate = absl::Seconds(random() % 1000 / 1000.0);
    if (estimate * margin.ratio() > absl::Seconds(1)) continue;
    const absl::Duration actual = estimate * ratio(random);
    const bool counts = i > 20'000;
    let_in += counts;
    if (actual <= absl::Seconds(1)) {
      margin.Took(estimate, actual);
    } else {
      late += counts;
      margin.CutOff(estimate, absl::Seconds(1));
    }
  }
  EXPECT_LT(late, 0.01 * let_in);
  EXPECT_GT(margin.ratio(), 1.3) << "99 of 100 of these draws are below 1.59";
}

TEST(MarginTest, OfWhatIsOverAtOnceNothingIsLearned) {
  Margin margin;
  margin.Took(absl::Milliseconds(10), absl::Seconds(1));
  EXPECT_EQ(margin.ratio(), 1);
}

// A house that has been full for two seconds and finishes 100 tokens of work a second.
class AdmissionMarginTest : public ::testing::Test {
 protected:
  AdmissionMarginTest() {
    StepReport report;
    report.waiting = 1;
    report.finished_work = 100;
    report.finished_tokens = 100;
    report.finished_time = absl::Seconds(1);
    for (int i = 0; i < 2; ++i) admission_.StepMade("en-de", report, absl::Seconds(1));
  }
  // A call of 100 tokens of work, expected to take 1.4 seconds, with so much time.
  absl::StatusOr<Permit> Call(absl::Duration time) {
    absl::StatusOr<Permit> permit = admission_.Enter(kCaller, 10);
    const CallWork work = {.model = "en-de", .tokens = 100, .longest = 140, .deadline = kNow + time};
    if (absl::Status status = permit->Charge(work, kNow); !status.ok()) return status;
    return permit;
  }

  Metrics metrics_;
  Admission admission_{{}, metrics_};
};

TEST_F(AdmissionMarginTest, ACallThatWasLateMakesTheNextOneNeedMoreTime) {
  {
    auto permit = Call(absl::Milliseconds(1450));
    ASSERT_THAT(permit, IsOk());
    permit->Ended(kNow + absl::Seconds(2), /*finished=*/true);
  }
  EXPECT_THAT(Call(absl::Milliseconds(1450)), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(Call(absl::Milliseconds(1650)), IsOk());
}

TEST_F(AdmissionMarginTest, OneThatWasInTimeOrEndedForAnotherReasonDoesNot) {
  Call(absl::Milliseconds(1450))->Ended(kNow + absl::Milliseconds(900), /*finished=*/true);
  Call(absl::Milliseconds(1450)).IgnoreError();  // failed: nobody says Ended
  // Cancelled before its time.
  Call(absl::Milliseconds(1450))->Ended(kNow + absl::Milliseconds(900), /*finished=*/false);
  EXPECT_THAT(Call(absl::Milliseconds(1450)), IsOk());
}

TEST_F(AdmissionMarginTest, ModelsLearnApart) {
  Call(absl::Milliseconds(1450))->Ended(kNow + absl::Seconds(9), /*finished=*/false);
  StepReport report;
  report.waiting = 1;
  report.finished_work = 100;
  for (int i = 0; i < 2; ++i) admission_.StepMade("other", report, absl::Seconds(1));
  auto permit = admission_.Enter(kCaller, 10);
  EXPECT_THAT(permit->Charge({.model = "other",
                              .tokens = 100,
                              .longest = 10,
                              .deadline = kNow + absl::Milliseconds(1450)},
                             kNow),
              IsOk());
}

}  // namespace
}  // namespace linnet::server
