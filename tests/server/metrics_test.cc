#include "server/metrics/metrics.h"

#include <fstream>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "server/base/errors.h"
#include "server/metrics/metrics_gpu.h"
#include "tests/support/places.h"

namespace linnet::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const ModelLabels kModel = {.name = "en-de",
                            .version = "1",
                            .task = "TASK_TRANSLATE",
                            .device = "cpu",
                            .compute_type = "float32",
                            .sha256 = "ab"};

// name -> "type, labels", as on the page of a server with a model and GPUs.
std::map<std::string, std::string> FamiliesOf(const std::string& page) {
  std::map<std::string, std::string> families;
  std::string name, type;
  std::set<std::string> labels;
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words.size() > 3 && words[1] == "TYPE") {
      name = words[2];
      type = words[3];
      labels.clear();
    }
    if (line.empty() || line[0] == '#') continue;
    // No label value of ours has a bracket or a comma.
    const size_t open = line.find('{');
    if (open != absl::string_view::npos) {
      const absl::string_view inside = line.substr(open + 1, line.rfind('}') - open - 1);
      for (absl::string_view label : absl::StrSplit(inside, "\","))
        labels.insert(std::string(label.substr(0, label.find('='))));
    }
    labels.erase("le");
    families[name] = absl::StrCat(type, ": ", absl::StrJoin(labels, ", "));
  }
  return families;
}

// The same from the tables in docs/METRICS.md.
std::map<std::string, std::string> DocumentedFamilies() {
  std::ifstream stream(SourceDir() / "docs/METRICS.md");
  std::map<std::string, std::string> families;
  for (std::string line; std::getline(stream, line);) {
    if (!absl::StartsWith(line, "| `")) continue;
    std::vector<std::string> cells = absl::StrSplit(line, '|');
    for (std::string& cell : cells) cell = std::string(absl::StripAsciiWhitespace(cell));
    std::set<std::string> labels;
    if (!cells[3].empty()) labels = absl::StrSplit(cells[3], ", ");
    families[cells[1].substr(1, cells[1].size() - 2)] =
        absl::StrCat(cells[2], ": ", absl::StrJoin(labels, ", "));
  }
  return families;
}

ModelMetrics& Show(Metrics& metrics) {
  metrics.ShowModel(kModel, 160);
  return metrics.AddModel(kModel.name);
}

TEST(MetricsTest, EveryMetricIsOnThePageAndDocumented) {
  Metrics metrics;
  metrics.ShowGpus(Nvml::Open(FakeNvml()));
  Show(metrics);
  metrics.SetServing({{"en-de", true}});
  EXPECT_EQ(FamiliesOf(metrics.Text()), DocumentedFamilies());
}

TEST(MetricsTest, CountersAndHistogramsStartAtZeroForKnownLabels) {
  Metrics metrics;
  Show(metrics);
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
  for (const char* reason : {"invalid", "not_found", "tokens", "bytes", "share", "deadline",
                             "short_deadline", "engine", "draining"}) {
    EXPECT_THAT(page,
                HasSubstr(absl::StrCat("linnet_rejected_total{reason=\"", reason, "\"} 0\n")));
  }
  for (const char* outcome : {"finished", "cancelled", "expired", "failed", "shed"}) {
    EXPECT_THAT(page, HasSubstr(absl::StrCat("linnet_sequences_total{model=\"en-de\",outcome=\"",
                                             outcome, "\"} 0\n")));
  }
  EXPECT_THAT(page, HasSubstr("linnet_rows_limit{model=\"en-de\"} 160\n"));
}

TEST(MetricsTest, CallIsInFlightUntilItIsCountedByCode) {
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

TEST(MetricsTest, CountsDeadlinesTooShortAsClientFaults) {
  Metrics metrics;
  for (const bool clients_fault : {true, false, true}) {
    metrics.CallStarted(Method::kTranslate);
    metrics.CallEnded(Method::kTranslate, absl::StatusCode::kDeadlineExceeded, absl::ZeroDuration(),
                      clients_fault);
  }
  const std::string page = metrics.Text();
  EXPECT_THAT(page, HasSubstr("linnet_requests_total{code=\"DEADLINE_EXCEEDED\",fault=\"client\","
                              "method=\"Translate\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("linnet_requests_total{code=\"DEADLINE_EXCEEDED\","
                              "method=\"Translate\"} 1\n"));
}

TEST(MetricsTest, CountsEachCodeOfTheErrorTableByItsName) {
  for (const ErrorCondition& row : ErrorTable()) {
    Metrics metrics;
    if (row.code == absl::StatusCode::kUnauthenticated ||
        row.code == absl::StatusCode::kPermissionDenied) {
      continue;  // below
    }
    metrics.CallStarted(Method::kReload);
    metrics.CallEnded(Method::kReload, row.code, absl::ZeroDuration());
    EXPECT_THAT(metrics.Text(), HasSubstr(absl::StrCat("linnet_requests_total{code=\"",
                                                       absl::StatusCodeToString(row.code),
                                                       "\",method=\"Reload\"} 1\n")));
  }
}

TEST(MetricsTest, CountsCallsThatATokenDoesNotAllowAsDeniedAlone) {
  Metrics metrics;
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnauthenticated, absl::StatusCode::kPermissionDenied,
        absl::StatusCode::kPermissionDenied}) {
    metrics.CallStarted(Method::kReload);
    metrics.CallEnded(Method::kReload, code, absl::ZeroDuration());
  }
  const std::string page = metrics.Text();
  EXPECT_THAT(page, HasSubstr("linnet_denied_total{code=\"UNAUTHENTICATED\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("linnet_denied_total{code=\"PERMISSION_DENIED\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("linnet_requests_in_flight{method=\"Reload\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("linnet_request_duration_seconds_count{method=\"Reload\"} 0\n"));
  EXPECT_THAT(page, Not(HasSubstr("linnet_requests_total{code=\"UNAUTHENTICATED\"")));
  EXPECT_THAT(page, Not(HasSubstr("linnet_requests_total{code=\"PERMISSION_DENIED\"")));
}

TEST(MetricsTest, CountsUnlistedCodesAsUnknown) {
  Metrics metrics;
  metrics.CallStarted(Method::kSummarize);
  metrics.CallEnded(Method::kSummarize, absl::StatusCode::kDataLoss, absl::ZeroDuration());
  EXPECT_THAT(metrics.Text(),
              HasSubstr("linnet_requests_total{code=\"UNKNOWN\",method=\"Summarize\"} 1\n"));
}

TEST(MetricsTest, StepCountsRowsAndOutcomes) {
  Metrics metrics;
  ModelMetrics& model = Show(metrics);
  model.StepMade({.waiting = 3,
                  .running = 5,
                  .rows = 20,
                  .added = 2,
                  .finished = 1,
                  .cancelled = 2,
                  .expired = 3,
                  .failed = 4,
                  .target_tokens = 9,
                  .stepped = true,
                  .encode = absl::Milliseconds(2),
                  .decode = absl::Milliseconds(4)});
  const std::string page = metrics.Text();
  for (const char* line : {"linnet_step_rows_sum{model=\"en-de\"} 20\n",
                           "linnet_sequences_total{model=\"en-de\",outcome=\"finished\"} 1\n",
                           "linnet_sequences_total{model=\"en-de\",outcome=\"cancelled\"} 2\n",
                           "linnet_sequences_total{model=\"en-de\",outcome=\"expired\"} 3\n",
                           "linnet_sequences_total{model=\"en-de\",outcome=\"failed\"} 4\n",
                           "linnet_sequences{model=\"en-de\",state=\"waiting\"} 3\n",
                           "linnet_sequences{model=\"en-de\",state=\"running\"} 5\n",
                           "linnet_encode_duration_seconds_sum{model=\"en-de\"} 0.002\n",
                           "linnet_step_duration_seconds_sum{model=\"en-de\"} 0.004\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

TEST(MetricsTest, RecordsPhaseTimesOfAFinishedSequence) {
  Metrics metrics;
  ModelMetrics& model = Show(metrics);
  const absl::Time start = absl::FromUnixSeconds(1000);
  model.SequenceFinished({.submitted = start,
                          .added = start + absl::Milliseconds(250),
                          .encoded = start + absl::Milliseconds(300),
                          .finished = start + absl::Milliseconds(750)},
                         {.priority = Priority::kBatch,
                          .source_tokens = 7,
                          .target_tokens = 9,
                          .ended_by_limit = true});
  const std::string page = metrics.Text();
  EXPECT_THAT(
      page,
      HasSubstr("linnet_queue_duration_seconds_sum{model=\"en-de\",priority=\"batch\"} 0.25\n"));
  EXPECT_THAT(
      page,
      HasSubstr("linnet_queue_duration_seconds_count{model=\"en-de\",priority=\"normal\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("linnet_decode_duration_seconds_sum{model=\"en-de\"} 0.5\n"));
  EXPECT_THAT(page, HasSubstr("linnet_source_tokens_total{model=\"en-de\"} 7\n"));
  EXPECT_THAT(page, HasSubstr("linnet_target_tokens_total{model=\"en-de\"} 9\n"));
  EXPECT_THAT(page, HasSubstr("linnet_length_limited_total{model=\"en-de\"} 1\n"));
}

TEST(MetricsTest, CountsRestartsOfAnEngine) {
  Metrics metrics;
  ModelMetrics& model = Show(metrics);
  model.SetRestarts(2);
  model.SetRestarts(2);
  const std::string page = metrics.Text();
  EXPECT_THAT(page, HasSubstr("linnet_engine_restarts_total{model=\"en-de\"} 2\n"));
}

TEST(MetricsTest, CountersGoOnWhenAVersionIsReplaced) {
  Metrics metrics;
  ModelMetrics& model = Show(metrics);
  model.SetRestarts(3);
  model.SetLoads({.loads = 2, .failures = 1});
  ModelMetrics& next = metrics.AddModel(kModel.name);
  next.SetRestarts(0);
  next.SetRestarts(2);
  next.SetLoads({.loads = 1});
  EXPECT_THAT(metrics.Text(),
              AllOf(HasSubstr("linnet_engine_restarts_total{model=\"en-de\"} 5\n"),
                    HasSubstr("linnet_model_loads_total{model=\"en-de\",result=\"ok\"} 3\n"),
                    HasSubstr("linnet_model_loads_total{model=\"en-de\",result=\"failed\"} 1\n")));
}

TEST(MetricsTest, ShowsForEveryModelIfItIsServing) {
  Metrics metrics;
  metrics.SetServing({{"en-de", true}, {"en-fr", false}});
  EXPECT_THAT(metrics.Text(), AllOf(HasSubstr("linnet_model_serving{model=\"en-de\"} 1\n"),
                                    HasSubstr("linnet_model_serving{model=\"en-fr\"} 0\n")));
  metrics.SetServing({{"en-de", false}});
  EXPECT_THAT(metrics.Text(), AllOf(HasSubstr("linnet_model_serving{model=\"en-de\"} 0\n"),
                                    Not(HasSubstr("en-fr"))));
}

TEST(MetricsTest, CountsCallsOfEachModelByCode) {
  Metrics metrics;
  ModelMetrics& model = Show(metrics);
  EXPECT_THAT(metrics.Text(),
              HasSubstr("linnet_model_requests_total{code=\"OK\",model=\"en-de\"} 0\n"));
  model.CallEnded(absl::StatusCode::kOk);
  model.CallEnded(absl::StatusCode::kOk);
  model.CallEnded(absl::StatusCode::kDataLoss);
  EXPECT_THAT(
      metrics.Text(),
      AllOf(HasSubstr("linnet_model_requests_total{code=\"OK\",model=\"en-de\"} 2\n"),
            HasSubstr("linnet_model_requests_total{code=\"UNKNOWN\",model=\"en-de\"} 1\n")));
}

TEST(MetricsTest, CountsTokensOfEachNamedClient) {
  Metrics metrics;
  metrics.TokensUsed({.client = "subject:search"}, 10, 20);
  metrics.TokensUsed({.client = "subject:search"}, 1, 2);
  metrics.TokensUsed({.client = "ipv4:192.0.2.1", .address = "ipv4:192.0.2.1"}, 5, 6);
  EXPECT_THAT(metrics.Text(),
              AllOf(HasSubstr("linnet_client_tokens_total{client=\"search\",kind=\"source\"} 11\n"),
                    HasSubstr("linnet_client_tokens_total{client=\"search\",kind=\"target\"} 22\n"),
                    HasSubstr("linnet_client_tokens_total{client=\"unnamed\",kind=\"source\"} 5\n"),
                    Not(HasSubstr("192.0.2.1"))));
}

TEST(MetricsTest, NumberOfClientsOnThePageIsBounded) {
  Metrics metrics;
  for (int i = 0; i < 1000; ++i) metrics.TokensUsed({.client = absl::StrCat("subject:c", i)}, 1, 0);
  metrics.TokensUsed({.client = "subject:c0"}, 1, 0);
  const std::string page = metrics.Text();
  EXPECT_THAT(page, AllOf(HasSubstr("{client=\"c0\",kind=\"source\"} 2\n"),
                          HasSubstr("{client=\"c99\",kind=\"source\"} 1\n"),
                          HasSubstr("{client=\"other\",kind=\"source\"} 900\n"),
                          Not(HasSubstr("client=\"c100\""))));
}

TEST(MetricsTest, CountsWarningsByReason) {
  Metrics metrics;
  EXPECT_THAT(metrics.Text(), HasSubstr("linnet_warnings_total{reason=\"LANGUAGE_MISMATCH\"} 0\n"));
  metrics.Warned(WarningReason::kNotProse);
  EXPECT_THAT(metrics.Text(), HasSubstr("linnet_warnings_total{reason=\"NOT_PROSE\"} 1\n"));
}

TEST(MetricsTest, ShowsEstimatesAndSafetyFactors) {
  Metrics metrics;
  Show(metrics);
  EXPECT_THAT(metrics.Text(),
              HasSubstr("linnet_estimate_safety_factor{for=\"waiting\",model=\"en-de\"} 1\n"));
  metrics.Estimated(absl::Milliseconds(1500));
  metrics.SetSafetyFactor("en-de", /*waits=*/true, 1.25);
  const std::string page = metrics.Text();
  EXPECT_THAT(page, HasSubstr("linnet_admission_estimate_seconds_sum 1.5\n"));
  EXPECT_THAT(page,
              HasSubstr("linnet_estimate_safety_factor{for=\"immediate\",model=\"en-de\"} 1\n"));
  EXPECT_THAT(page,
              HasSubstr("linnet_estimate_safety_factor{for=\"waiting\",model=\"en-de\"} 1.25\n"));
}

TEST(MetricsTest, MeasuresTextPhasesAndFirstSegment) {
  Metrics metrics;
  metrics.Tokenized(absl::Milliseconds(2));
  metrics.TextQueued(absl::Milliseconds(7));
  metrics.FirstSegment(absl::Milliseconds(30));
  const std::string page = metrics.Text();
  EXPECT_THAT(page, HasSubstr("linnet_tokenize_duration_seconds_sum 0.002\n"));
  EXPECT_THAT(page, HasSubstr("linnet_text_queue_duration_seconds_sum 0.007\n"));
  EXPECT_THAT(page, HasSubstr("linnet_time_to_first_segment_seconds_sum 0.03\n"));
}

}  // namespace
}  // namespace linnet::server
