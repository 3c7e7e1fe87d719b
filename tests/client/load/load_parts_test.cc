// Tests the parts of linnet-load: the histogram, the record of calls, the texts and the mix.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <set>
#include <vector>

#include "absl/strings/str_split.h"
#include "client/library/utf8.h"
#include "client/load/mix.h"
#include "client/load/texts.h"
#include "client/run/histogram.h"
#include "client/run/record.h"
#include "client/run/timeline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace linnet::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LatencyHistogramTest, PercentilesMatchASortedList) {
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
    for (const int64_t per_mille : {0, 70, 100, 280, 500, 560, 900, 990, 999, 1000}) {
      const double percent = static_cast<double>(per_mille) / 10;
      const int64_t rank = std::max<int64_t>(1, (per_mille * count + 999) / 1000);
      const int64_t exact = values[rank - 1];
      const int64_t found = absl::ToInt64Microseconds(histogram.Percentile(percent));
      EXPECT_GE(found, exact) << percent << " % of " << count;
      EXPECT_LE(found, exact * (1 + 1.0 / 1024)) << percent << " % of " << count;
    }
    EXPECT_EQ(absl::ToInt64Microseconds(histogram.max()), values.back());
    EXPECT_EQ(histogram.Percentile(100), histogram.max());
    EXPECT_EQ(histogram.count(), count);
  }
}

TEST(LatencyHistogramTest, ValuesUpToTwoMillisecondsAreExact) {
  for (int64_t micros = 0; micros < 2048; ++micros) {
    LatencyHistogram histogram;
    histogram.Record(absl::Microseconds(micros));
    histogram.Record(absl::Hours(1));  // so that the max is another value
    ASSERT_EQ(histogram.Percentile(50), absl::Microseconds(micros));
  }
}

TEST(LatencyHistogramTest, CountsValuesUpToALimit) {
  LatencyHistogram histogram;
  for (int ms : {1, 2, 3, 300, 4000}) histogram.Record(absl::Milliseconds(ms));
  EXPECT_EQ(histogram.CountUpTo(absl::Milliseconds(2)), 2);
  EXPECT_EQ(histogram.CountUpTo(absl::Milliseconds(299)), 3);
  EXPECT_EQ(histogram.CountUpTo(absl::Milliseconds(300)), 4);
  EXPECT_EQ(histogram.CountUpTo(absl::Hours(100)), 5);
  EXPECT_EQ(histogram.mean(), absl::Microseconds(861200));
}

TEST(LatencyHistogramTest, ClampsValuesToItsRange) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.Percentile(50), absl::ZeroDuration());
  histogram.Record(absl::Seconds(-1));
  EXPECT_EQ(histogram.Percentile(50), absl::ZeroDuration());
  histogram.Record(absl::InfiniteDuration());
  EXPECT_EQ(histogram.count(), 2);
  EXPECT_GT(histogram.max(), absl::Hours(24));
}

TEST(LatencyHistogramTest, SumHasThePercentilesOfAllValues) {
  std::mt19937_64 random(5);
  for (int bits : {5, 10}) {
    LatencyHistogram first(bits), second(bits), all(bits);
    for (int i = 0; i < 5000; ++i) {
      const absl::Duration value = absl::Microseconds(random() % 10000000);
      (i % 3 == 0 ? first : second).Record(value);
      all.Record(value);
    }
    first.Add(second);
    EXPECT_EQ(first.count(), 5000);
    EXPECT_EQ(first.max(), all.max());
    EXPECT_EQ(first.mean(), all.mean());
    for (double percent : {1.0, 50.0, 99.9}) {
      EXPECT_EQ(first.Percentile(percent), all.Percentile(percent));
    }
  }
}

CallTimes At(int intended_ms, int sent_ms, int ended_ms) {
  return {absl::Milliseconds(intended_ms), absl::Milliseconds(sent_ms),
          absl::Milliseconds(ended_ms)};
}

TEST(LoadRecordTest, MeasuresFromDueTimeAndFromSending) {
  LoadRecord record(absl::ZeroDuration(), absl::Seconds(10));
  record.Add(At(100, 700, 750), {});
  const StatusRecord& ok = record.by_status().at(absl::StatusCode::kOk);
  EXPECT_EQ(ok.from_intended.max(), absl::Milliseconds(650));
  EXPECT_EQ(ok.from_sent.max(), absl::Milliseconds(50));
  EXPECT_EQ(record.late(), 1);
}

TEST(LoadRecordTest, CountsCallsByDueTimeAndAnswersByArrival) {
  LoadRecord record(absl::Seconds(1), absl::Seconds(2));
  record.Add(At(500, 500, 900), {absl::OkStatus(), 1, 1, 10});     // warm-up, all of it
  record.Add(At(900, 900, 1100), {absl::OkStatus(), 1, 2, 20});    // answered in the window
  record.Add(At(1500, 1500, 1600), {absl::OkStatus(), 1, 3, 30});  // due and answered in it
  record.Add(At(1900, 1900, 2100), {absl::OkStatus(), 1, 4, 40});  // due in it
  EXPECT_EQ(record.warm_up(), 2);
  EXPECT_EQ(record.measured(), 2);
  EXPECT_EQ(record.answered_in_window(), 2);
  EXPECT_EQ(record.source_tokens(), 5);
  EXPECT_EQ(record.target_tokens(), 50);
  EXPECT_EQ(record.window(), absl::Seconds(1));
}

TEST(LoadRecordTest, CountsEachStatusAndKeepsTheFirstMessage) {
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

TEST(LoadRecordTest, AbandonedCallsAreNeitherAnswersNorErrors) {
  LoadRecord record(absl::ZeroDuration(), absl::Seconds(10));
  record.Add(At(0, 0, 10), {});
  record.Add(At(0, 0, 20),
             {.status = absl::CancelledError(""), .abandonment = Abandonment::kCancel});
  record.Add(At(0, 0, 30),
             {.status = absl::UnavailableError(""), .abandonment = Abandonment::kDisconnect});
  record.AddNotSent(absl::Seconds(9));
  EXPECT_EQ(record.measured(), 1);
  EXPECT_EQ(record.abandoned(), 2);
  EXPECT_EQ(record.abandoned(Abandonment::kCancel), 1);
  EXPECT_EQ(record.abandoned(Abandonment::kDeadline), 0);
  EXPECT_EQ(record.offered(), 4);
}

TEST(LoadRecordTest, AdjacentWindowsPartitionAllCalls) {
  std::mt19937_64 random(6);
  LoadRecord whole(absl::Milliseconds(200), absl::Milliseconds(1000));
  std::vector<LoadRecord> parts;
  for (int begin = 200; begin < 1000; begin += 100) {
    parts.emplace_back(absl::Milliseconds(begin), absl::Milliseconds(begin + 100));
  }
  for (int i = 0; i < 1000; ++i) {
    const int intended = i, sent = intended + random() % 20;
    const CallTimes times = At(intended, sent, sent + random() % 100);
    const bool answered = random() % 5 > 0;
    const CallOutcome outcome = {answered ? absl::OkStatus() : absl::UnavailableError("gone"), 1, 2,
                                 3};
    whole.Add(times, outcome);
    for (LoadRecord& part : parts) part.Add(times, outcome);
  }
  int64_t measured = 0, answers = 0, tokens = 0, late = 0;
  for (const LoadRecord& part : parts) {
    EXPECT_EQ(part.measured(), 100);
    measured += part.measured();
    answers += part.answered_in_window();
    tokens += part.target_tokens();
    late += part.late();
  }
  EXPECT_EQ(measured, whole.measured());
  EXPECT_EQ(answers, whole.answered_in_window());
  EXPECT_EQ(tokens, whole.target_tokens());
  EXPECT_EQ(late, whole.late());
}

TEST(LoadRecordTest, CountsKindsOfCallsSeparately) {
  LoadRecord record(absl::ZeroDuration(), absl::Seconds(10));
  record.Add(At(0, 0, 10), {absl::OkStatus(), 1, 2, 3, 0});
  record.Add(At(0, 0, 50), {absl::OkStatus(), 1, 2, 30, 1});
  record.Add(At(0, 0, 90), {.status = absl::UnavailableError("gone"), .kind = 1});
  EXPECT_EQ(record.by_kind().at(0).latency.max(), absl::Milliseconds(10));
  EXPECT_EQ(record.by_kind().at(1).latency.max(), absl::Milliseconds(50));
  EXPECT_EQ(record.by_kind().at(1).calls, 2);
  EXPECT_EQ(record.by_kind().at(1).answered, 1);
  EXPECT_EQ(record.by_kind().at(1).target_tokens, 30);
}

TEST(TimelineTest, IntervalsDoubleAndKeepEveryCall) {
  Timeline timeline(absl::Seconds(1), absl::Milliseconds(100));
  const int seconds = 100;
  for (int ms = 0; ms < seconds * 1000; ms += 10) {
    const bool answered = ms % 40 != 0;
    timeline.Add(At(ms, ms, ms + 5),
                 {.status = answered ? absl::OkStatus() : absl::UnavailableError("gone")});
  }
  timeline.AddNotSent(absl::Seconds(50));
  EXPECT_EQ(timeline.interval(), absl::Milliseconds(800));  // 99 s in at most 240
  int64_t due = 0, answered = 0, failed = 0, latencies = 0;
  for (const Timeline::Interval& interval : timeline.intervals()) {
    due += interval.due;
    answered += interval.answered;
    failed += interval.failed;
    latencies += interval.latency.count();
  }
  EXPECT_EQ(due, 9901);  // calls of the first second are not measured
  EXPECT_EQ(answered, 7425);
  EXPECT_EQ(failed, 2475);
  EXPECT_EQ(latencies, 7425);
}

class MixTest : public ::testing::Test {
 protected:
  MixTest() {
    defaults_.sentences = {"a default"};
    defaults_.texts_name = "default";
    defaults_.deadline = absl::Seconds(60);
  }
  absl::StatusOr<std::vector<CallKind>> Read(const std::string& text) {
    const std::string path = folder_.path() / "mix";
    std::ofstream(path) << text;
    return ReadMix(path, defaults_, 1);
  }

  const test::TemporaryFolder folder_;
  CallKind defaults_;
};

TEST_F(MixTest, ParsesEveryFieldOfALine) {
  const auto kinds = Read(
      R"({"name": "short", "weight": 3, "translate": {"targetLanguageCode": "de", "options": {"beamSize": 2, "topK": 5}, "priority": "PRIORITY_BATCH"}}

{"summarize": {"model": "m"}, "words": [2, 2], "texts": 4, "deadline": "5s"})");
  ASSERT_TRUE(kinds.ok()) << kinds.status();
  ASSERT_EQ(kinds->size(), 2);
  const CallKind& first = kinds->at(0);
  EXPECT_EQ(first.name, "short");
  EXPECT_EQ(first.weight, 3);
  EXPECT_EQ(std::get<v1::TranslateRequest>(first.request).options().top_k(), 5);
  EXPECT_EQ(std::get<v1::TranslateRequest>(first.request).priority(), v1::PRIORITY_BATCH);
  EXPECT_THAT(first.sentences, ElementsAre("a default"));
  EXPECT_EQ(first.deadline, absl::Seconds(60));
  const CallKind& second = kinds->at(1);
  EXPECT_EQ(second.name, "line 3");
  EXPECT_EQ(std::get<v1::SummarizeRequest>(second.request).model(), "m");
  EXPECT_EQ(second.texts, 4);
  EXPECT_EQ(second.deadline, absl::Seconds(5));
  for (const std::string& sentence : second.sentences) {
    EXPECT_EQ(std::count(sentence.begin(), sentence.end(), ' '), 1);
  }
}

TEST_F(MixTest, RefusesInvalidLineWithItsNumber) {
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"", "no line with a call"},
      {"translate", "line 1"},
      {"[]", "no JSON object"},
      {"{}", "one of \"translate\" and \"summarize\""},
      {R"({"translate": {}, "summarize": {}})", "one of"},
      {R"({"translate": {}})"
       "\n"
       R"({"translate": {"bream": 3}})",
       "line 2"},
      {R"({"translate": {"contents": ["a"]}})", "contents come from"},
      {R"({"translate": {}, "wieght": 3})", "\"wieght\" is none of"},
      {R"({"translate": {}, "weight": 0})", "\"weight\" is not above 0"},
      {R"({"translate": {}, "weight": "3"})", "line 1"},
      {R"({"translate": {}, "texts": 0})", "\"texts\""},
      {R"({"translate": {}, "name": "a"})"
       "\n"
       R"({"summarize": {}, "name": "a"})",
       "line 2: the name \"a\" is that of an earlier line"},
      {R"({"translate": {}, "words": [5, 3]})", "the minimum and the maximum"},
      {R"({"translate": {}, "words": [3.9, 4.7]})", "the minimum and the maximum"},
      {R"({"translate": {}, "words": 3})", "the minimum and the maximum"},
      {R"({"translate": {}, "texts": 4294967298})", "\"texts\" is not 1 to 100000"},
      {R"({"translate": {}, "texts": 2.9})", "\"texts\" is not 1 to 100000"},
      {R"({"translate": {}, "texts": true})", "\"texts\" is not 1 to 100000"},
      {R"({"translate": {}, "texts": 1, "texts": 2})", "the key \"texts\" is there twice"},
      {R"({"translate": {}, "words": [1, 3], "file": "x"})", "exclude each other"},
      {R"({"translate": {}, "file": "/nowhere"})", "/nowhere"},
      {R"({"translate": {}, "deadline": "soon"})", "\"soon\" is no duration"},
  };
  for (const auto& [text, message] : refused) {
    EXPECT_THAT(Read(text).status().message(), HasSubstr(message)) << text;
  }
}

TEST_F(MixTest, DrawsKindsByWeightAndSeed) {
  std::vector<CallKind> kinds(3, defaults_);
  kinds[0].weight = 5;
  kinds[1].weight = 1;
  kinds[2].weight = 4;
  std::vector<int> counts(3);
  int after_itself = 0;
  for (int i = 0; i < 100000; ++i) {
    ++counts[PickKind(kinds, 9, i)];
    after_itself += PickKind(kinds, 9, i) == PickKind(kinds, 9, i + 1) ? 1 : 0;
    ASSERT_EQ(PickKind(kinds, 9, i), PickKind(kinds, 9, i));
  }
  // Five standard deviations of a binomial count are at most 800.
  EXPECT_NEAR(counts[0], 50000, 800);
  EXPECT_NEAR(counts[1], 10000, 800);
  EXPECT_NEAR(counts[2], 40000, 800);
  EXPECT_NEAR(after_itself, 42000, 1000);  // .25 + .01 + .16: consecutive draws are independent
  int same = 0;
  for (int i = 0; i < 10000; ++i) same += PickKind(kinds, 1, i) == PickKind(kinds, 2, i) ? 1 : 0;
  EXPECT_NEAR(same, 4200, 300) << "draws depend on the seed";
}

TEST(LoadTextsTest, MadeUpSentencesDependOnLengthsAndSeed) {
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

TEST(LoadTextsTest, ReadsLinesThatAreNotBlank) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() / "texts";
  std::ofstream(path) << "one\n\n  \ntwo";
  EXPECT_THAT(ReadSentences(path).value(), ElementsAre("one", "two"));
  std::ofstream(path) << "\n\n";
  EXPECT_THAT(ReadSentences(path).status().message(), HasSubstr("no line with text"));
  EXPECT_FALSE(ReadSentences(folder.path() / "nothing").ok());
  std::ofstream(path) << "one\ncaf\xE9\n";
  EXPECT_THAT(ReadSentences(path).status().message(),
              AllOf(HasSubstr("line 2 of "), HasSubstr("is not UTF-8")));
}

}  // namespace
}  // namespace linnet::client
