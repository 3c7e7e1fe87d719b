// What a load run is made of: arrivals, the histogram, the record of calls, the texts.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <set>
#include <vector>

#include "absl/strings/str_split.h"
#include "client/library/utf8.h"
#include "client/load/arrivals.h"
#include "client/load/histogram.h"
#include "client/load/record.h"
#include "client/load/texts.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace linnet::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<double> Times(ArrivalKind kind, double rate, uint64_t seed, int count) {
  Arrivals arrivals(kind, rate, seed);
  std::vector<double> times;
  for (int i = 0; i < count; ++i) times.push_back(absl::ToDoubleSeconds(arrivals.Next()));
  return times;
}

TEST(ArrivalsTest, AConstantRateHasEqualGapsThatDoNotDrift) {
  const std::vector<double> times = Times(ArrivalKind::kConstant, 3, 1, 300001);
  EXPECT_EQ(times[0], 0);
  EXPECT_NEAR(times[1], 1.0 / 3, 1e-9);  // absl counts quarters of a nanosecond
  EXPECT_NEAR(times[300000], 100000, 1e-9);
}

TEST(ArrivalsTest, PoissonGapsAreExponentialAndKnowNothingOfEachOther) {
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

TEST(ArrivalsTest, TheSameSeedGivesTheSameTimesAndAnotherOthers) {
  EXPECT_EQ(Times(ArrivalKind::kPoisson, 9, 4, 100), Times(ArrivalKind::kPoisson, 9, 4, 100));
  EXPECT_NE(Times(ArrivalKind::kPoisson, 9, 4, 100), Times(ArrivalKind::kPoisson, 9, 5, 100));
}

TEST(LatencyHistogramTest, PercentilesAreThoseOfASortedListWithinTheResolution) {
  std::mt19937_64 random(3);
  std::lognormal_distribution<double> micros(9, 2.5);  // from microseconds to minutes
  for (int count : {1, 2, 7, 1000, 30000}) {
    LatencyHistogram histogram;
    std::vector<int64_t> values;
    for (int i = 0; i < count; ++i) {
      values.push_back(static_cast<int64_t>(micros(random)));
      histogram.Record(absl::Microseconds(values.back()));
    }
    std::sort(values.begin(), values.end());
    for (double percent : {0.01, 10.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
      const auto rank = std::max<int64_t>(1, std::ceil(percent / 100 * count));
      const int64_t exact = values[rank - 1];
      const int64_t found = absl::ToInt64Microseconds(histogram.Percentile(percent));
      EXPECT_GE(found, exact) << percent << " % of " << count;
      EXPECT_LE(found, exact * (1 + LatencyHistogram::kResolution)) << percent << " % of " << count;
    }
    EXPECT_EQ(absl::ToInt64Microseconds(histogram.max()), values.back());
    EXPECT_EQ(histogram.Percentile(100), histogram.max());
    EXPECT_EQ(histogram.count(), count);
  }
}

TEST(LatencyHistogramTest, EveryValueUpToTwoMillisecondsIsExact) {
  for (int64_t micros = 0; micros < 2048; ++micros) {
    LatencyHistogram histogram;
    histogram.Record(absl::Microseconds(micros));
    histogram.Record(absl::Hours(1));  // so that the greatest is another
    ASSERT_EQ(histogram.Percentile(50), absl::Microseconds(micros));
  }
}

TEST(LatencyHistogramTest, CountsWhatIsUpToALimit) {
  LatencyHistogram histogram;
  for (int ms : {1, 2, 3, 300, 4000}) histogram.Record(absl::Milliseconds(ms));
  EXPECT_EQ(histogram.CountUpTo(absl::Milliseconds(2)), 2);
  EXPECT_EQ(histogram.CountUpTo(absl::Milliseconds(299)), 3);
  EXPECT_EQ(histogram.CountUpTo(absl::Milliseconds(300)), 4);
  EXPECT_EQ(histogram.CountUpTo(absl::Hours(100)), 5);
  EXPECT_EQ(histogram.mean(), absl::Microseconds(861200));
}

TEST(LatencyHistogramTest, KeepsWhatIsOutOfItsRangeAtItsEnds) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.Percentile(50), absl::ZeroDuration());
  histogram.Record(absl::Seconds(-1));
  EXPECT_EQ(histogram.Percentile(50), absl::ZeroDuration());
  histogram.Record(absl::InfiniteDuration());
  EXPECT_EQ(histogram.count(), 2);
  EXPECT_GT(histogram.max(), absl::Hours(24));
}

CallTimes At(int intended_ms, int sent_ms, int ended_ms) {
  return {absl::Milliseconds(intended_ms), absl::Milliseconds(sent_ms),
          absl::Milliseconds(ended_ms)};
}

TEST(LoadRecordTest, MeasuresFromTheIntendedTimeAndFromSending) {
  LoadRecord record(absl::ZeroDuration(), absl::Seconds(10));
  record.Add(At(100, 700, 750), {});
  const StatusRecord& ok = record.by_status().at(absl::StatusCode::kOk);
  EXPECT_EQ(ok.from_intended.max(), absl::Milliseconds(650));
  EXPECT_EQ(ok.from_sent.max(), absl::Milliseconds(50));
  EXPECT_EQ(record.late(), 1);
}

TEST(LoadRecordTest, CallsBelongToTheWindowInWhichTheyWereDueAnswersToThatInWhichTheyCame) {
  LoadRecord record(absl::Seconds(1), absl::Seconds(2));
  record.Add(At(500, 500, 900), {absl::OkStatus(), 1, 10});     // warm-up, all of it
  record.Add(At(900, 900, 1100), {absl::OkStatus(), 2, 20});    // answered in the window
  record.Add(At(1500, 1500, 1600), {absl::OkStatus(), 3, 30});  // due and answered in it
  record.Add(At(1900, 1900, 2100), {absl::OkStatus(), 4, 40});  // due in it
  EXPECT_EQ(record.warm_up(), 2);
  EXPECT_EQ(record.measured(), 2);
  EXPECT_EQ(record.answered_in_window(), 2);
  EXPECT_EQ(record.source_tokens(), 5);
  EXPECT_EQ(record.target_tokens(), 50);
  EXPECT_EQ(record.window(), absl::Seconds(1));
}

TEST(LoadRecordTest, CountsEachStatusByItselfAndKeepsTheFirstMessage) {
  LoadRecord record(absl::ZeroDuration(), absl::Seconds(10));
  record.Add(At(0, 0, 10), {});
  record.Add(At(0, 0, 20), {absl::ResourceExhaustedError("full")});
  record.Add(At(0, 0, 30), {absl::ResourceExhaustedError("still full")});
  const StatusRecord& busy = record.by_status().at(absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(busy.from_sent.count(), 2);
  EXPECT_EQ(busy.first_message, "full");
  EXPECT_EQ(record.answered_in_window(), 1);
  EXPECT_EQ(record.measured(), 3);
}

TEST(LoadTextsTest, MadeUpSentencesHaveTheLengthsAskedForAndComeAgainWithTheSeed) {
  const auto sentences = MadeUpSentences(500, 2, 5, 8);
  std::set<size_t> lengths;
  for (const std::string& sentence : sentences) {
    lengths.insert(std::vector<std::string>(absl::StrSplit(sentence, ' ')).size());
    EXPECT_EQ(sentence.back(), '.');
    EXPECT_EQ(FindInvalidUtf8(sentence), std::nullopt);
  }
  EXPECT_THAT(lengths, ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(sentences, MadeUpSentences(500, 2, 5, 8));
  EXPECT_NE(sentences, MadeUpSentences(500, 2, 5, 9));
}

TEST(LoadTextsTest, ReadsTheLinesOfAFileThatAreNotBlank) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() / "texts";
  std::ofstream(path) << "one\n\n  \ntwo";
  EXPECT_THAT(ReadSentences(path).value(), ElementsAre("one", "two"));
  std::ofstream(path) << "\n\n";
  EXPECT_THAT(ReadSentences(path).status().message(), HasSubstr("no line with text"));
  EXPECT_FALSE(ReadSentences(folder.path() / "nothing").ok());
}

}  // namespace
}  // namespace linnet::client
