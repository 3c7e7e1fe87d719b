#include "server/metrics.h"

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"

namespace linnet::server {
namespace {

using ::testing::HasSubstr;

const ModelLabels kModel = {.name = "en-de",
                            .version = "1",
                            .task = "TASK_TRANSLATE",
                            .device = "cpu",
                            .compute_type = "float32",
                            .sha256 = "ab"};

// Every family of the page: a new metric is named here as well, so that none is lost or renamed by
// accident.
const char* const kFamilies[] = {"linnet_requests_total",
                                 "linnet_request_duration_seconds",
                                 "linnet_requests_in_flight",
                                 "linnet_rejected_total",
                                 "linnet_admitted_tokens",
                                 "linnet_admitted_tokens_limit",
                                 "linnet_admitted_bytes",
                                 "linnet_admitted_bytes_limit",
                                 "linnet_model_reloads_total",
                                 "linnet_drain_seconds",
                                 "linnet_ready",
                                 "linnet_engine_up",
                                 "linnet_engine_restarts_total",
                                 "linnet_tokenize_seconds",
                                 "linnet_text_bytes_total",
                                 "linnet_queue_seconds",
                                 "linnet_decode_seconds",
                                 "linnet_encode_seconds",
                                 "linnet_step_seconds",
                                 "linnet_cycle_seconds",
                                 "linnet_step_rows",
                                 "linnet_step_sequences",
                                 "linnet_rows_limit",
                                 "linnet_memory_tokens_limit",
                                 "linnet_sequences",
                                 "linnet_sequences_total",
                                 "linnet_length_limited_total",
                                 "linnet_encoder_tokens_total",
                                 "linnet_source_tokens_total",
                                 "linnet_target_tokens_total",
                                 "linnet_model_info",
                                 "linnet_model_load_seconds",
                                 "linnet_build_info",
                                 "process_start_time_seconds"};

TEST(MetricsTest, EveryMetricIsOnThePageFromTheStart) {
  Metrics metrics;
  metrics.AddModel(kModel, 160, 16384, absl::Seconds(1));
  const std::string page = metrics.Text();
  std::set<std::string> on_page;
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words.size() > 2 && words[0] == "#" && words[1] == "TYPE") on_page.insert(words[2]);
  }
  EXPECT_EQ(on_page, std::set<std::string>(std::begin(kFamilies), std::end(kFamilies)));
}

TEST(MetricsTest, EveryCounterAndHistogramIsZeroForEveryKnownLabelBeforeTheFirstCall) {
  Metrics metrics;
  metrics.AddModel(kModel, 160, 16384, absl::Seconds(1));
  const std::string page = metrics.Text();
  for (const char* method : {"Translate", "Summarize", "ListModels"}) {
    for (const char* code : {"OK", "CANCELLED", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED",
                             "NOT_FOUND", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "INTERNAL"}) {
      EXPECT_THAT(page, HasSubstr(absl::StrCat("linnet_requests_total{code=\"", code,
                                               "\",method=\"", method, "\"} 0\n")));
    }
    EXPECT_THAT(page, HasSubstr(absl::StrCat("linnet_request_duration_seconds_count{method=\"",
                                             method, "\"} 0\n")));
  }
  for (const char* reason :
       {"invalid", "not_found", "tokens", "bytes", "share", "deadline", "engine", "draining"}) {
    EXPECT_THAT(page,
                HasSubstr(absl::StrCat("linnet_rejected_total{reason=\"", reason, "\"} 0\n")));
  }
  for (const char* outcome : {"finished", "cancelled", "expired", "failed", "shed"}) {
    EXPECT_THAT(page, HasSubstr(absl::StrCat("linnet_sequences_total{model=\"en-de\",outcome=\"",
                                             outcome, "\"} 0\n")));
  }
  EXPECT_THAT(page, HasSubstr("linnet_rows_limit{model=\"en-de\"} 160\n"));
}

TEST(MetricsTest, ACallIsInFlightUntilItEndsAndThenCountedByItsCode) {
  Metrics metrics;
  metrics.CallStarted(Method::kTranslate);
  EXPECT_THAT(metrics.Text(), HasSubstr("linnet_requests_in_flight{method=\"Translate\"} 1\n"));
  metrics.CallEnded(Method::kTranslate, absl::StatusCode::kNotFound, absl::Milliseconds(20));
  const std::string page = metrics.Text();
  EXPECT_THAT(page, HasSubstr("linnet_requests_in_flight{method=\"Translate\"} 0\n"));
  EXPECT_THAT(page,
              HasSubstr("linnet_requests_total{code=\"NOT_FOUND\",method=\"Translate\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("linnet_request_duration_seconds_sum{method=\"Translate\"} 0.02"));
}

TEST(MetricsTest, ACodeThatNobodyExpectedCountsAsUnknown) {
  Metrics metrics;
  metrics.CallStarted(Method::kSummarize);
  metrics.CallEnded(Method::kSummarize, absl::StatusCode::kDataLoss, absl::ZeroDuration());
  EXPECT_THAT(metrics.Text(),
              HasSubstr("linnet_requests_total{code=\"UNKNOWN\",method=\"Summarize\"} 1\n"));
}

TEST(MetricsTest, AStepCountsItsRowsItsPaddingAndWhatEnded) {
  Metrics metrics;
  ModelMetrics& model = metrics.AddModel(kModel, 160, 16384, absl::Seconds(1));
  model.StepMade({.waiting = 3,
                  .remaining = 5,
                  .sequences = 6,
                  .rows = 20,
                  .seated = 2,
                  .encoded_tokens = 10,
                  .padded_encoded_tokens = 16,
                  .finished = 1,
                  .cancelled = 2,
                  .expired = 3,
                  .failed = 4,
                  .target_tokens = 9,
                  .stepped = true,
                  .encode = absl::Milliseconds(2),
                  .decode = absl::Milliseconds(4)},
                 absl::Milliseconds(7));
  const std::string page = metrics.Text();
  for (const char* line : {"linnet_step_rows_sum{model=\"en-de\"} 20\n",
                           "linnet_step_sequences_sum{model=\"en-de\"} 6\n",
                           "linnet_encoder_tokens_total{kind=\"source\",model=\"en-de\"} 10\n",
                           "linnet_encoder_tokens_total{kind=\"padding\",model=\"en-de\"} 6\n",
                           "linnet_sequences_total{model=\"en-de\",outcome=\"finished\"} 1\n",
                           "linnet_sequences_total{model=\"en-de\",outcome=\"cancelled\"} 2\n",
                           "linnet_sequences_total{model=\"en-de\",outcome=\"expired\"} 3\n",
                           "linnet_sequences_total{model=\"en-de\",outcome=\"failed\"} 4\n",
                           "linnet_sequences{model=\"en-de\",state=\"waiting\"} 3\n",
                           "linnet_sequences{model=\"en-de\",state=\"seated\"} 5\n",
                           "linnet_encode_seconds_sum{model=\"en-de\"} 0.002\n",
                           "linnet_step_seconds_sum{model=\"en-de\"} 0.004\n",
                           "linnet_cycle_seconds_sum{model=\"en-de\"} 0.007\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

TEST(MetricsTest, AFinishedSequenceShowsItsWayThroughTheHouse) {
  Metrics metrics;
  ModelMetrics& model = metrics.AddModel(kModel, 160, 16384, absl::Seconds(1));
  const absl::Time start = absl::FromUnixSeconds(1000);
  model.SequenceFinished({.submitted = start,
                          .seated = start + absl::Milliseconds(250),
                          .encoded = start + absl::Milliseconds(300),
                          .finished = start + absl::Milliseconds(750)},
                         7, 9, /*ended_by_limit=*/true);
  const std::string page = metrics.Text();
  EXPECT_THAT(page, HasSubstr("linnet_queue_seconds_sum{model=\"en-de\"} 0.25\n"));
  EXPECT_THAT(page, HasSubstr("linnet_decode_seconds_sum{model=\"en-de\"} 0.5\n"));
  EXPECT_THAT(page, HasSubstr("linnet_source_tokens_total{model=\"en-de\"} 7\n"));
  EXPECT_THAT(page, HasSubstr("linnet_target_tokens_total{model=\"en-de\"} 9\n"));
  EXPECT_THAT(page, HasSubstr("linnet_length_limited_total{model=\"en-de\"} 1\n"));
}

}  // namespace
}  // namespace linnet::server
