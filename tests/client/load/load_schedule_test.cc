// Tests schedules, arrivals and the search for a rate.
#include <algorithm>
#include <cmath>
#include <vector>

#include "client/load/search.h"
#include "client/run/arrivals.h"
#include "client/run/schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace linnet::client {
namespace {

using ::testing::HasSubstr;

std::vector<double> Times(ArrivalKind kind, const RateSchedule& schedule, uint64_t seed, int max) {
  Arrivals arrivals(kind, schedule, seed);
  std::vector<double> times;
  while (std::ssize(times) < max) {
    const absl::Duration next = arrivals.Next();
    if (next == absl::InfiniteDuration()) break;
    times.push_back(absl::ToDoubleSeconds(next));
  }
  return times;
}

std::vector<double> Times(ArrivalKind kind, double rate, uint64_t seed, int count) {
  return Times(kind, RateSchedule::Constant(rate), seed, count);
}

RateSchedule Parsed(const std::string& text) { return RateSchedule::Parse(text).value(); }

TEST(ArrivalsTest, ConstantRateHasEqualGapsWithoutDrift) {
  const std::vector<double> times = Times(ArrivalKind::kConstant, 3, 1, 300001);
  EXPECT_EQ(times[0], 0);
  EXPECT_NEAR(times[1], 1.0 / 3, 1e-9);  // absl counts quarters of a nanosecond
  EXPECT_NEAR(times[300000], 100000, 1e-9);
}

TEST(ArrivalsTest, PoissonGapsAreExponentialAndIndependent) {
  const int count = 200000;
  const std::vector<double> times = Times(ArrivalKind::kPoisson, 50, 7, count);
  ASSERT_TRUE(std::is_sorted(times.begin(), times.end()));
  std::vector<double> gaps = {times[0]};
  for (int i = 1; i < count; ++i) gaps.push_back(times[i] - times[i - 1]);
  // Quantiles of an exponential distribution of mean 1/50: -log(1 - q) / 50. Their standard
  // deviation over 200000 gaps is below 0.5 % of the mean.
  std::vector<double> sorted = gaps;
  std::sort(sorted.begin(), sorted.end());
  for (double q : {0.1, 0.5, 0.9, 0.99}) {
    EXPECT_NEAR(sorted[static_cast<size_t>(q * count)] * 50, -std::log(1 - q), 0.05) << q;
  }
  double product = 0;
  for (int i = 1; i < count; ++i) product += (gaps[i] * 50 - 1) * (gaps[i - 1] * 50 - 1);
  EXPECT_NEAR(product / count, 0, 0.02);  // correlation of neighbours
}

TEST(ArrivalsTest, TimesDependOnTheSeed) {
  EXPECT_EQ(Times(ArrivalKind::kPoisson, 9, 4, 100), Times(ArrivalKind::kPoisson, 9, 4, 100));
  EXPECT_NE(Times(ArrivalKind::kPoisson, 9, 4, 100), Times(ArrivalKind::kPoisson, 9, 5, 100));
}

TEST(ArrivalsTest, OffersTheIntegralOfTheRateInEachSpan) {
  const RateSchedule schedule = Parsed("1000:10s,0:5s,0..2000:10s,500..100:10s");
  const auto rate = [](double t) {
    if (t < 10) return 1000.0;
    if (t < 15) return 0.0;
    if (t < 25) return 200 * (t - 15);
    return 500 - 40 * (t - 25);
  };
  for (ArrivalKind kind : {ArrivalKind::kConstant, ArrivalKind::kPoisson}) {
    const std::vector<double> times = Times(kind, schedule, 3, 1 << 20);
    ASSERT_TRUE(std::is_sorted(times.begin(), times.end()));
    EXPECT_LE(times.back(), 35);
    for (double begin = 0; begin < 35; begin += 1) {
      double expected = 0;
      for (int i = 0; i < 1000; ++i) expected += rate(begin + (i + 0.5) / 1000) / 1000;
      const auto count = std::lower_bound(times.begin(), times.end(), begin + 1) -
                         std::lower_bound(times.begin(), times.end(), begin);
      // Five standard deviations of a Poisson count; equal gaps differ by at most one.
      const double slack = kind == ArrivalKind::kPoisson ? 5 * std::sqrt(expected) : 1.5;
      EXPECT_NEAR(static_cast<double>(count), expected, slack) << "second " << begin;
    }
  }
}

TEST(RateScheduleTest, TimeOfInvertsTheIntegralOfTheRate) {
  const RateSchedule schedule = Parsed("10:2s,10..30:2s");
  EXPECT_EQ(schedule.length(), absl::Seconds(4));
  EXPECT_EQ(schedule.DueTime(0), absl::ZeroDuration());
  EXPECT_EQ(schedule.DueTime(20), absl::Seconds(2));
  EXPECT_NEAR(absl::ToDoubleSeconds(schedule.DueTime(35)), 3, 1e-9);  // 20 + 10 + 5
  EXPECT_NEAR(absl::ToDoubleSeconds(schedule.DueTime(60)), 4, 1e-9);
  EXPECT_EQ(schedule.DueTime(60.001), absl::InfiniteDuration());
}

TEST(RateScheduleTest, NoCallFallsOnAPause) {
  const std::vector<double> times =
      Times(ArrivalKind::kConstant, Parsed("0:1s,5:1s,0:1s,0.3:10s,0:1s"), 1, 100);
  ASSERT_EQ(times.size(), 9);
  EXPECT_EQ(times[0], 1);
  EXPECT_NEAR(times[4], 1.8, 1e-9);
  EXPECT_EQ(times[5], 3) << "due at the end of the pause, and not at its begin";
  EXPECT_EQ(times[8], 14) << "the end of the schedule, at which no call is made any more";
}

TEST(RateScheduleTest, AfterPrependsTheInitialRate) {
  const RateSchedule schedule = Parsed("10..30:2s").After(absl::Seconds(3));
  EXPECT_EQ(schedule.length(), absl::Seconds(5));
  EXPECT_NEAR(absl::ToDoubleSeconds(schedule.DueTime(29)), 2.9, 1e-9);
  EXPECT_NEAR(absl::ToDoubleSeconds(schedule.DueTime(70)), 5, 1e-9);
}

TEST(RateScheduleTest, RefusesInvalidScheduleWithThePart) {
  for (const char* text : {"", "10", "10:", ":10s", "10:0s", "-1:10s", "10..:10s", "1..2..3:10s",
                           "nan:10s", "10:25h", "10:30s,,20:30s", "10:30s;20:30s", "1e7:1s"}) {
    EXPECT_THAT(RateSchedule::Parse(text).status().message(), HasSubstr("is no part")) << text;
  }
  EXPECT_THAT(RateSchedule::Parse("0:10s").status().message(), HasSubstr("offers no call"));
}

// Runs a search on a server that holds every rate up to `capacity`, except in the probes in
// `unlucky`.
struct Searched {
  std::optional<double> found;
  std::vector<double> probes;
};
Searched Find(double min, double max, double precision, double capacity,
              const std::vector<size_t>& unlucky = {}) {
  RateSearch search(min, max, precision);
  Searched result;
  while (const std::optional<double> rate = search.Next()) {
    result.probes.push_back(*rate);
    EXPECT_LT(result.probes.size(), 100);
    const bool lucky = std::count(unlucky.begin(), unlucky.end(), result.probes.size() - 1) == 0;
    search.Add(*rate <= capacity && lucky);
  }
  result.found = search.found();
  return result;
}

TEST(RateSearchTest, FindsHighestRateWithinThePrecision) {
  for (double capacity : {1.0, 1.7, 63.9, 64.0, 999.0, 5e4}) {
    for (double precision : {0.01, 0.05, 0.5}) {
      const Searched searched = Find(1, 1e6, precision, capacity);
      ASSERT_TRUE(searched.found);
      EXPECT_LE(*searched.found, capacity);
      EXPECT_GE(*searched.found * (1 + precision) * 1.000001, capacity);
      EXPECT_EQ(searched.probes.back(), *searched.found) << "it was probed again at the end";
      EXPECT_GE(std::count(searched.probes.begin(), searched.probes.end(), *searched.found), 2);
    }
  }
}

TEST(RateSearchTest, StaysWithinItsRange) {
  EXPECT_EQ(Find(10, 100, 0.1, 9).found, std::nullopt);
  EXPECT_THAT(Find(10, 100, 0.1, 9).probes, ::testing::ElementsAre(10));
  EXPECT_EQ(Find(10, 100, 0.1, 1e9).found, 100);
  EXPECT_THAT(Find(10, 100, 0.1, 1e9).probes, ::testing::ElementsAre(10, 20, 40, 80, 100, 100));
  EXPECT_EQ(Find(10, 10, 0.1, 1e9).found, 10);
}

TEST(RateSearchTest, LowersARateThatDoesNotHoldTwice) {
  const Searched lucky = Find(1, 1e6, 0.05, 100);
  const size_t last = lucky.probes.size() - 1;
  const Searched searched = Find(1, 1e6, 0.05, 100, {last});
  ASSERT_TRUE(searched.found);
  EXPECT_NEAR(*searched.found, *lucky.found / 1.05, 1e-9);
  EXPECT_EQ(Find(10, 100, 0.1, 10, {}).found, 10);
}

TEST(RateScheduleTest, MeanRateIsThatOfDueCalls) {
  for (const char* text : {"10:30s", "10:30s,20:30s", "0..50:1m,50:30s", "2:3s,2..12:6s"}) {
    const RateSchedule schedule = *RateSchedule::Parse(text);
    for (double share : {0.1, 0.5, 0.9}) {
      const absl::Duration length = schedule.length() * share;
      const double calls = schedule.MeanRate(length) * absl::ToDoubleSeconds(length);
      EXPECT_NEAR(absl::ToDoubleSeconds(schedule.DueTime(calls)), absl::ToDoubleSeconds(length),
                  1e-6)
          << text;
    }
  }
  EXPECT_DOUBLE_EQ(RateSchedule::Constant(7).MeanRate(absl::Seconds(3)), 7);
}

}  // namespace
}  // namespace linnet::client
