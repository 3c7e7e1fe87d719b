// Tests the reports of a run: differences of the server's metrics, plots and the three forms.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/load/metrics_page.h"
#include "client/load/plot.h"
#include "client/load/report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace linnet::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

MetricsPage Page(const std::string& text) { return ParseMetrics(text).value(); }

constexpr char kBefore[] =
    "# HELP calls_total Calls.\n"
    "# TYPE calls_total counter\n"
    "calls_total{code=\"OK\"} 10\n"
    "calls_total{code=\"UNKNOWN\"} 3\n"
    "# TYPE rows gauge\n"
    "rows 4\n"
    "# TYPE wait_seconds histogram\n"
    "wait_seconds_count{task=\"a, b\"} 10\n"
    "wait_seconds_sum{task=\"a, b\"} 5\n"
    "wait_seconds_bucket{task=\"a, b\",le=\"1\"} 10\n"
    "wait_seconds_bucket{task=\"a, b\",le=\"2\"} 10\n"
    "wait_seconds_bucket{task=\"a, b\",le=\"+Inf\"} 10\n";

TEST(MetricsPageTest, ReportsOnlyChanges) {
  const MetricsPage page = Page(kBefore);
  EXPECT_EQ(page.samples.at("calls_total{code=\"OK\"}"), 10);
  const MetricsChanges none = Difference(page, page);
  EXPECT_THAT(none.counters, IsEmpty());
  EXPECT_THAT(none.histograms, IsEmpty());
  EXPECT_THAT(none.gauges, IsEmpty());
}

TEST(MetricsPageTest, ComputesDifferencesOfEachMetricType) {
  const MetricsChanges changes =
      Difference(Page(kBefore), Page("# TYPE calls_total counter\n"
                                     "calls_total{code=\"OK\"} 25\n"
                                     "calls_total{code=\"UNKNOWN\"} 3\n"
                                     "calls_total{code=\"CANCELLED\"} 2\n"
                                     "# TYPE rows gauge\n"
                                     "rows 1.5 1700000000000\n"
                                     "# TYPE wait_seconds histogram\n"
                                     "wait_seconds_count{task=\"a, b\"} 110\n"
                                     "wait_seconds_sum{task=\"a, b\"} 155\n"
                                     "wait_seconds_bucket{task=\"a, b\",le=\"1\"} 30\n"
                                     "wait_seconds_bucket{task=\"a, b\",le=\"2\"} 110\n"
                                     "wait_seconds_bucket{task=\"a, b\",le=\"+Inf\"} 110\n"));
  EXPECT_THAT(changes.counters, ElementsAre(Pair("calls_total{code=\"CANCELLED\"}", 2),
                                            Pair("calls_total{code=\"OK\"}", 15)));
  ASSERT_EQ(changes.gauges.size(), 1);
  EXPECT_EQ(changes.gauges[0].before, 4);
  EXPECT_EQ(changes.gauges[0].after, 1.5);
  ASSERT_EQ(changes.histograms.size(), 1);
  const MetricsChanges::Histogram& wait = changes.histograms[0];
  EXPECT_EQ(wait.name, "wait_seconds{task=\"a, b\"}");
  EXPECT_EQ(wait.count, 100);
  EXPECT_DOUBLE_EQ(wait.mean, 1.5);
  // 20 up to 1 s, 80 from 1 s to 2 s: the 50th lies 30/80 into the second bucket.
  EXPECT_DOUBLE_EQ(wait.p50, 1 + 30.0 / 80);
  EXPECT_DOUBLE_EQ(wait.p99, 1 + 79.0 / 80);
}

TEST(MetricsPageTest, CounterResetCountsFromZero) {
  const MetricsChanges changes =
      Difference(Page(kBefore), Page("# TYPE calls_total counter\ncalls_total{code=\"OK\"} 4\n"));
  EXPECT_THAT(changes.counters, ElementsAre(Pair("calls_total{code=\"OK\"}", 4)));
}

TEST(MetricsPageTest, SumsPagesOfReplicas) {
  MetricsPage sum;
  AddMetrics(Page(kBefore), &sum);
  AddMetrics(Page(kBefore), &sum);
  EXPECT_EQ(sum.samples.at("calls_total{code=\"OK\"}"), 20);
  EXPECT_EQ(sum.types.at("rows"), "gauge");
}

TEST(MetricsPageTest, RefusesInvalidPageWithTheLine) {
  EXPECT_THAT(ParseMetrics("a 1\nb{c=\"d e\"}\n").status().message(), HasSubstr("line 2"));
  EXPECT_THAT(ParseMetrics("<html>\n").status().message(), HasSubstr("line 1"));
  EXPECT_THAT(ReadMetrics("https://a:1/", absl::Seconds(1)).status().message(),
              HasSubstr("is not http://HOST:PORT/PATH"));
}

TEST(PlotTest, PointsLieInsideTheFrameInOrder) {
  for (bool logarithmic : {false, true}) {
    Plot plot;
    plot.title = "a < b";
    plot.y_logarithmic = logarithmic;
    plot.limit = 500;
    plot.series = {{"one & only", {{1, 2}, {2, 30}, {3, 400}}}};
    const std::string html = PlotHtml(plot);
    EXPECT_THAT(html, AllOf(HasSubstr("a &lt; b"), HasSubstr("one &amp; only: 400 at 3"),
                            HasSubstr("class=\"limit\"")));
    double last = 1e9;
    size_t circles = 0;
    for (size_t at = html.find("cy=\""); at != std::string::npos; at = html.find("cy=\"", at + 1)) {
      const double y = std::stod(html.substr(at + 4));
      EXPECT_TRUE(0 < y && y < 300 && y < last) << y;
      last = y;
      ++circles;
    }
    EXPECT_EQ(circles, 3);
  }
}

TEST(PlotTest, PlotsNoPointAndOnePoint) {
  Plot plot;
  plot.series = {{"none", {}}};
  EXPECT_THAT(PlotHtml(plot), HasSubstr("nothing was measured"));
  plot.series[0].points = {{0, 0}};
  EXPECT_THAT(PlotHtml(plot), AllOf(HasSubstr("<circle"), Not(HasSubstr("nan"))));
}

class LoadReportTest : public ::testing::Test {
 protected:
  LoadReportTest() {
    settings_.server = "<server>:1";
    settings_.task = "translate";
    settings_.objective = Objective{absl::Milliseconds(100), 90};
    settings_.kinds = {{"short & easy", 1, absl::Seconds(60)}, {"long", 8, absl::Seconds(5)}};
    settings_.plan.schedule = RateSchedule::Constant(10);
  }

  // A run of ten seconds with ten calls each: answered after 50 ms, but in one second after 300.
  LoadFindings Findings() {
    LoadRecord record(absl::ZeroDuration(), absl::Seconds(10));
    Timeline timeline(absl::ZeroDuration(), absl::Seconds(1));
    for (int i = 0; i < 100; ++i) {
      const absl::Duration due = absl::Milliseconds(100 * i);
      const absl::Duration latency = absl::Milliseconds(i / 10 == 5 ? 300 : 50);
      CallOutcome outcome = {absl::OkStatus(), 1, 5, 6, static_cast<size_t>(i % 2)};
      if (i == 7) outcome.status = absl::UnavailableError("gone <away>");
      if (i == 8)
        outcome = {.status = absl::CancelledError(""), .abandonment = Abandonment::kCancel};
      record.Add({due, due, due + latency}, outcome);
      timeline.Add({due, due, due + latency}, outcome);
    }
    return {.result = {record, {}, timeline, absl::Seconds(10), false, false}};
  }

  LoadSettings settings_;
};

TEST_F(LoadReportTest, AllFormsAgree) {
  LoadFindings findings = Findings();
  findings.metrics = Difference(Page(""), Page(kBefore));
  findings.metrics_elapsed = absl::Seconds(4);
  const std::string text = LoadReport(settings_, findings);
  EXPECT_THAT(text, AllOf(HasSubstr("answered         9.8 calls/s"),
                          HasSubstr("short & easy: 1 a call, deadline 1m; "
                                    "long: 8 a call, deadline 5s\n"),
                          HasSubstr("UNAVAILABLE, the first: gone <away>"),
                          HasSubstr("1 calls    cancelled"), HasSubstr("wait_seconds"),
                          HasSubstr("        10      2.5/s\n")));
  const std::string json = LoadReportJson(settings_, findings);
  EXPECT_THAT(json, AllOf(HasSubstr("\"answered_per_second\":9.8"), HasSubstr("\"short & easy\":{"),
                          HasSubstr("\"texts_per_call\":8"), HasSubstr("\"deadline_seconds\":5.0"),
                          HasSubstr("\"cancel\":1"), HasSubstr("\"timeline\":["),
                          HasSubstr("\"server_metrics\":{"), Not(HasSubstr("\n"))));
  const std::string html = LoadReportHtml(settings_, findings);
  EXPECT_THAT(html, AllOf(HasSubstr("answered         9.8 calls/s"), HasSubstr("short &amp; easy"),
                          HasSubstr("gone &lt;away&gt;"), HasSubstr("&lt;server&gt;:1"),
                          HasSubstr("Latency over time"), HasSubstr("wait_seconds")));
  for (const char* outside : {"src=", "href=", "@import", "url(", "<script"}) {
    EXPECT_THAT(html, Not(HasSubstr(outside))) << "the page is self-contained";
  }
}

TEST_F(LoadReportTest, TimelineShowsTheSlowSecond) {
  const LoadFindings findings = Findings();
  const auto& intervals = findings.result.timeline.intervals();
  ASSERT_EQ(intervals.size(), 10);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(intervals[i].latency.max(), absl::Milliseconds(i == 5 ? 300 : 50));
  }
  EXPECT_THAT(LoadReportHtml(settings_, findings), HasSubstr("max: 300 at 5"));
}

TEST_F(LoadReportTest, PercentilesEndAtTheSlowestCall) {
  LoadRecord record(absl::ZeroDuration(), absl::Seconds(10));
  for (int i = 0; i < 10; ++i) {
    const absl::Duration due = absl::Seconds(i);
    record.Add({due, due, due + absl::Milliseconds(i == 4 ? 300 : 50)}, {absl::OkStatus(), 1});
  }
  const LoadFindings findings = {.result = {record, {}, Timeline({}, absl::Seconds(1)), {}}};
  EXPECT_THAT(LoadReportHtml(settings_, findings), HasSubstr("from sending: 300 at 1<"));
}

TEST_F(LoadReportTest, SearchShowsProbesAndResult) {
  LoadFindings findings = Findings();
  findings.searched = true;
  findings.probes = {{8, true, false, findings.result.record},
                     {16, false, true, findings.result.record},
                     {12, false, false, findings.result.record}};
  findings.found = 8;
  EXPECT_THAT(
      LoadReport(settings_, findings),
      AllOf(HasSubstr("\n     8 held "), HasSubstr("\n    16 cut "), HasSubstr("\n    12 missed "),
            HasSubstr("90 % answered within 100ms up to 8 calls/s\n")));
  EXPECT_THAT(LoadReportJson(settings_, findings), HasSubstr("\"found_is_ceiling\":false"));
  EXPECT_THAT(LoadReportJson(settings_, findings), HasSubstr("\"found_per_second\":8.0"));
  EXPECT_THAT(LoadReportHtml(settings_, findings),
              AllOf(HasSubstr("Throughput against offered load"), HasSubstr("up to 8 calls/s")));
  findings.probes.erase(findings.probes.begin() + 1, findings.probes.end());
  EXPECT_THAT(LoadReport(settings_, findings),
              HasSubstr("up to 8 calls/s, the maximum of --rates: the limit is higher"));
  EXPECT_THAT(LoadReportJson(settings_, findings), HasSubstr("\"found_is_ceiling\":true"));
  findings.found.reset();
  EXPECT_THAT(LoadReport(settings_, findings), HasSubstr("even at 8 calls/s, the minimum"));
  EXPECT_THAT(LoadReportJson(settings_, findings), HasSubstr("\"found_per_second\":null"));
}

}  // namespace
}  // namespace linnet::client
