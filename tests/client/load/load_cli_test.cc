// Tests linnet-load against a fake server: its calls, its reports and its errors.
#include <signal.h>

#include <atomic>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/command/exit_status.h"
#include "client/load/cli.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "tests/client/fake_server.h"
#include "tests/client/load/load_cli_fixture.h"
#include "tests/client/process.h"
#include "tests/support/places.h"
#include "tests/support/temporary_folder.h"

namespace linnet::client {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(LoadCliTest, SendsTheLinesOfAFileInTurn) {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() / "texts";
  std::ofstream(file) << "one\ntwo\n\nthree\n";
  EXPECT_EQ(Run({"--to", "de", "--from", "en", "--file", file, "--concurrency", "2", "--texts", "2",
                 "--calls", "3", "--beam", "4"}),
            kExitOk)
      << err_;
  EXPECT_THAT(Sent(), ElementsAre("one", "one", "three", "three", "two", "two"));
  for (const v1::TranslateRequest& request : server_.translate_requests()) {
    EXPECT_EQ(request.source_language_code(), "en");
    EXPECT_EQ(request.target_language_code(), "de");
    EXPECT_EQ(request.options().beam_size(), 4);
  }
}

TEST_F(LoadCliTest, SummarizesWithAModel) {
  EXPECT_EQ(Run({"--task", "summarize", "--model", "m", "--rate", "100", "--calls", "5"}), kExitOk)
      << err_;
  ASSERT_THAT(server_.summarize_requests(), SizeIs(5));
  EXPECT_EQ(server_.summarize_requests()[0].model(), "m");
}

TEST_F(LoadCliTest, SetsTheOnlyLanguageThatFits) {
  const std::vector<std::string> flags = {"--to", "de", "--concurrency", "1", "--calls", "1"};
  *server_.models.add_models() = ModelOf("en-de", v1::TASK_TRANSLATE, "en", "de");
  EXPECT_EQ(Run(flags), kExitOk) << err_;
  EXPECT_EQ(server_.translate_requests().back().source_language_code(), "en");
  *server_.models.add_models() = ModelOf("fr-de", v1::TASK_TRANSLATE, "fr", "de");
  EXPECT_EQ(Run(flags), kExitOk) << err_;
  EXPECT_EQ(server_.translate_requests().back().source_language_code(), "");
}

TEST_F(LoadCliTest, ReportsRatesAndPercentilesOfEachStatus) {
  std::atomic<int> calls = 0;
  server_.on_translate = [&calls](auto&, const auto& request, auto& response) {
    if (++calls % 4 == 0) {
      return ServerError(grpc::StatusCode::RESOURCE_EXHAUSTED, "the server is full", "BUSY");
    }
    v1::TokenUsage& usage = *response.add_translations()->mutable_usage();
    usage.set_source_tokens(request.contents(0).size());
    usage.set_target_tokens(7);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"--to", "de", "--concurrency", "1", "--calls", "40", "--json"}), kExitOk) << err_;
  EXPECT_EQ(Number({"calls", "measured"}), 40);
  EXPECT_EQ(Number({"by_status", "OK", "calls"}), 30);
  EXPECT_EQ(Number({"by_status", "RESOURCE_EXHAUSTED", "calls"}), 10);
  EXPECT_GT(Number({"by_status", "OK", "from_intended_ms", "p99.9"}), 0);
  EXPECT_NEAR(Number({"target_tokens_per_second"}) / Number({"answered_per_second"}), 7, 1e-6);
  EXPECT_EQ(Number({"goodput_per_second"}), Number({"answered_per_second"}));
  calls = 0;
  EXPECT_EQ(Run({"--to", "de", "--concurrency", "1", "--calls", "40"}), kExitOk);
  EXPECT_THAT(out_, AllOf(HasSubstr("closed loop, 1 in flight"), HasSubstr("p99.9"),
                          HasSubstr("OK                       30  75.0%"),
                          HasSubstr("RESOURCE_EXHAUSTED       10  25.0%"),
                          HasSubstr("RESOURCE_EXHAUSTED, the first: the server is full")));
  const std::vector<std::string> lines = absl::StrSplit(out_, '\n');
  for (const std::string& line : lines) EXPECT_LE(line.size(), 80) << line;
}

TEST_F(LoadCliTest, GoodputCountsAnswersWithinTheObjective) {
  std::atomic<int> calls = 0;
  server_.on_translate = [&calls](auto&, const auto&, auto& response) {
    if (calls++ % 2 == 0) absl::SleepFor(absl::Milliseconds(50));
    response.add_translations();
    return grpc::Status::OK;
  };
  EXPECT_EQ(
      Run({"--to", "de", "--concurrency", "1", "--calls", "10", "--objective", "49ms", "--json"}),
      kExitOk);
  EXPECT_LE(Number({"goodput_per_second"}), Number({"answered_per_second"}) * 0.5001);
  EXPECT_EQ(Number({"objective_ms"}), 49);
}

TEST_F(LoadCliTest, DeadlineEndsACall) {
  server_.on_translate = [](grpc::ServerContext& context, const auto&, auto&) {
    while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"--to", "de", "--rate", "100", "--calls", "3", "--deadline", "50ms", "--json"}),
            kExitLocal);
  EXPECT_EQ(Number({"by_status", "DEADLINE_EXCEEDED", "calls"}), 3);
  EXPECT_GE(Number({"by_status", "DEADLINE_EXCEEDED", "from_sent_ms", "p50"}), 49);
}

TEST_F(LoadCliTest, EachChannelHasItsOwnConnection) {
  std::mutex mu;
  std::set<std::string> peers;
  int calls = 0;
  server_.on_translate = [&](grpc::ServerContext& context, const auto&, auto& response) {
    {
      std::lock_guard lock(mu);
      peers.insert(context.peer());
      if (++calls == 6) arrived_.Notify();
    }
    arrived_.WaitForNotification();  // until each caller has made one
    response.add_translations();
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"--to", "de", "--concurrency", "6", "--channels", "3", "--calls", "6"}), kExitOk);
  EXPECT_THAT(peers, SizeIs(3));
}

TEST_F(LoadCliTest, DoesNotRetryRefusedCalls) {
  server_.on_translate = [](auto&, const auto&, auto&) {
    return ServerError(grpc::StatusCode::UNAVAILABLE, "going down", "SHUTTING_DOWN");
  };
  EXPECT_EQ(Run({"--to", "de", "--concurrency", "1", "--calls", "4"}), kExitLocal);
  EXPECT_THAT(server_.translate_requests(), SizeIs(4));
  EXPECT_THAT(out_, HasSubstr("UNAVAILABLE, the first: going down"));
}

TEST_F(LoadCliTest, StopCancelsCallsInFlightAndReports) {
  std::thread interrupt = StopDuringACall();
  EXPECT_EQ(Run({"--to", "de", "--concurrency", "1", "--json"}), kExitLocal);
  interrupt.join();
  EXPECT_EQ(Number({"by_status", "CANCELLED", "calls"}), 1);
  EXPECT_THAT(out_, HasSubstr("\"stopped\":true"));
}

TEST_F(LoadCliTest, StopCancelsCallsOnConnectionsOfTheirOwn) {
  std::thread interrupt = StopDuringACall();
  EXPECT_EQ(Run({"--to", "de", "--concurrency", "1", "--disconnect", "1", "--leave-after", "20s",
                 "--deadline", "10s", "--json"}),
            kExitLocal);
  interrupt.join();
  EXPECT_EQ(Number({"by_status", "CANCELLED", "calls"}), 1) << out_;
}

TEST_F(LoadCliTest, InterruptEndsWithAReport) {
  server_.on_translate = [this](auto&, const auto&, auto& response) {
    if (server_.translate_requests().size() == 3) arrived_.Notify();
    response.add_translations();
    return grpc::Status::OK;
  };
  Process process(ProgramDir() / "linnet-load",
                  {"--to", "de", "--rate", "50", "--duration", "1h", "--max-in-flight", "1"},
                  server_.address());
  arrived_.WaitForNotification();
  process.Signal(SIGINT);
  const std::string report = process.Read();
  EXPECT_THAT(report, AllOf(HasSubstr("until it was stopped"), HasSubstr("OK  ")));
  EXPECT_EQ(process.Wait(), kExitOk);
}

TEST_F(LoadCliTest, ClosedStandardOutputIsAnError) {
  Process process("/bin/sh",
                  {"-c", "exec \"$0\" --from en --to de --concurrency 1 --calls 1 2>&1 >&-",
                   ProgramDir() / "linnet-load"},
                  server_.address());
  EXPECT_EQ(process.ReadAll(),
            "linnet-load: DATA_LOSS: the report could not be written completely\n");
  EXPECT_EQ(process.Wait(), kExitLocal);
}

// The server stalls once for all calls. A closed loop would hide it: fewer than 1 % of its calls
// meet the stall. The checks hold on any machine, however slow: calls due in the stall waited for
// its end, while the calls themselves cannot have taken longer than four at a time.
TEST_F(LoadCliTest, MeasuresAStallAsUsersSeeIt) {
  const absl::Duration stall = absl::Milliseconds(800);
  std::mutex mu;
  std::atomic<int> calls = 0;
  server_.on_translate = [&](auto&, const auto&, auto& response) {
    std::lock_guard lock(mu);
    if (++calls == 60) absl::SleepFor(stall);
    response.add_translations();
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"--to", "de", "--rate", "200", "--arrivals", "constant", "--duration", "2s",
                 "--max-in-flight", "4", "--json"}),
            kExitOk);
  EXPECT_EQ(Number({"by_status", "OK", "calls"}), 400);
  // 120 of the 160 calls due in the stall waited at least 200 ms: 30 % of all calls.
  EXPECT_GE(Number({"by_status", "OK", "from_intended_ms", "p90"}), 200);
  EXPECT_GE(Number({"by_status", "OK", "from_intended_ms", "mean"}), 0.3 * 200);
  EXPECT_GE(Number({"calls", "late"}), 120);
  EXPECT_LE(Number({"by_status", "OK", "from_sent_ms", "mean"}),
            4 * Number({"elapsed_seconds"}) * 1000 / 400);
  // For comparison, a closed loop on the same server: only one of 400 calls sees the stall.
  calls = 0;
  EXPECT_EQ(Run({"--to", "de", "--concurrency", "1", "--calls", "400", "--json"}), kExitOk);
  EXPECT_GE(Number({"by_status", "OK", "from_sent_ms", "max"}), 800);
  EXPECT_LT(Number({"by_status", "OK", "from_sent_ms", "p99"}), 800);
}

TEST_F(LoadCliTest, MixSendsEachKindWithItsOptions) {
  const test::TemporaryFolder folder;
  const std::string mix = folder.path() / "mix";
  std::ofstream(mix)
      << R"({"weight": 3, "translate": {"targetLanguageCode": "de", "options": {"beamSize": 1}}})"
      << "\n"
      << R"({"name": "sums", "summarize": {"model": "m"}, "words": [4, 4], "texts": 2})"
      << "\n";
  EXPECT_EQ(Run({"--mix", mix, "--concurrency", "4", "--calls", "400", "--json"}), kExitOk) << err_;
  EXPECT_NEAR(server_.translate_requests().size(), 300, 50);  // five standard deviations are 43
  EXPECT_EQ(server_.translate_requests().size() + server_.summarize_requests().size(), 400);
  EXPECT_EQ(server_.translate_requests()[0].options().beam_size(), 1);
  EXPECT_EQ(server_.summarize_requests()[0].contents_size(), 2);
  EXPECT_EQ(Number({"kinds", "sums", "calls"}), server_.summarize_requests().size());
  EXPECT_EQ(Number({"kinds", "line 1", "answered"}), server_.translate_requests().size());
}

TEST_F(LoadCliTest, SummariesIgnoreTheSettingOfTheTargetLanguage) {
  for (const std::vector<std::string>& task :
       {std::vector<std::string>{"--task", "summarize"}, {"--task=summarize"}}) {
    std::vector<std::string> arguments = {"--concurrency", "1", "--calls", "2"};
    arguments.insert(arguments.end(), task.begin(), task.end());
    std::ostringstream out, err;
    const Variables variables = {{"LINNET_SERVER", server_.address()}, {"LINNET_TO", "de"}};
    EXPECT_EQ(RunLoadCli(arguments, {out, err, variables, stop_.get_token()}), kExitOk)
        << err.str();
  }
  EXPECT_EQ(server_.summarize_requests().size(), 4);
}

TEST_F(LoadCliTest, MixNeedsNoLanguagesAndIgnoresSettings) {
  const test::TemporaryFolder folder;
  const std::string mix = folder.path() / "mix";
  std::ofstream(mix) << R"({"translate": {"targetLanguageCode": "nl"}})"
                     << "\n";
  std::ostringstream out, err;
  const Variables variables = {
      {"LINNET_SERVER", server_.address()}, {"LINNET_TO", "de"}, {"LINNET_FROM", "en"}};
  for (const std::vector<std::string>& given :
       {std::vector<std::string>{"--mix", mix}, std::vector<std::string>{"--mix=" + mix}}) {
    std::vector<std::string> arguments = {"--concurrency", "1", "--calls", "2"};
    arguments.insert(arguments.end(), given.begin(), given.end());
    EXPECT_EQ(RunLoadCli(arguments, {out, err, variables, stop_.get_token()}), kExitOk)
        << err.str();
  }
  EXPECT_EQ(server_.translate_requests().back().target_language_code(), "nl");
  EXPECT_EQ(Run({"--mix", mix, "--to", "de", "--concurrency", "1"}), kExitUsage)
      << "typed flags still exclude each other";
}

// On a busy machine a caller may abandon a call before the server has begun it; the server must
// notice the abandonment of each call that it did begin.
TEST_F(LoadCliTest, CountsAbandonedCallsSeparately) {
  std::atomic<int> begun = 0, left = 0, stayed = 0;
  server_.on_translate = [&](grpc::ServerContext& context, const auto&, auto& response) {
    ++begun;
    for (int ms = 0; ms < 20000 && !context.IsCancelled(); ++ms) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    ++(context.IsCancelled() ? left : stayed);
    response.add_translations();
    return grpc::Status::OK;
  };
  for (const auto& [flag, name] : std::vector<std::pair<std::string, std::string>>{
           {"--give-up", "deadline"}, {"--cancel", "cancel"}, {"--disconnect", "disconnect"}}) {
    const int before = begun;
    EXPECT_EQ(Run({"--to", "de", "--rate", "200", "--calls", "10", flag, "1", "--leave-after",
                   "300ms", "--json"}),
              kExitLocal)
        << err_;
    EXPECT_EQ(Number({"left", name}), 10) << out_;
    EXPECT_EQ(Number({"calls", "measured"}), 0);
    EXPECT_GT(begun, before) << flag;
    while (left + stayed < begun) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_EQ(stayed, 0) << flag;
  }
}

TEST_F(LoadCliTest, CallsAnsweredBeforeAbandonmentCountAsAnswered) {
  for (const char* flag : {"--give-up", "--cancel", "--disconnect"}) {
    EXPECT_EQ(Run({"--to", "de", "--concurrency", "2", "--calls", "20", flag, "1", "--leave-after",
                   "1h", "--json"}),
              kExitOk)
        << err_;
    EXPECT_EQ(Number({"by_status", "OK", "calls"}), 20) << flag;
    EXPECT_GT(Number({"texts_per_second"}), 0) << flag;
  }
}

TEST_F(LoadCliTest, FindsHighestRateThatMeetsTheObjective) {
  // Serves calls one by one for 20 ms each: at most 50 per second.
  std::mutex mu;
  server_.on_translate = [&mu](auto&, const auto&, auto& response) {
    std::lock_guard lock(mu);
    absl::SleepFor(absl::Milliseconds(20));
    response.add_translations();
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"--to", "de", "--find-rate", "--objective", "p90=300ms", "--rates", "20", "320",
                 "--precision", "0.5", "--duration", "1s", "--arrivals", "constant", "--json"}),
            kExitOk)
      << out_ << err_;
  EXPECT_GE(Number({"found_per_second"}), 20);
  // From about 70 calls per second on, the queue of one second's calls grows to more than 300 ms.
  EXPECT_LE(Number({"found_per_second"}), 80);
  EXPECT_EQ(Run({"--to", "de", "--find-rate", "--objective", "p90=1ms", "--rates", "2", "500",
                 "--duration", "500ms"}),
            kExitLocal);
  EXPECT_THAT(out_, HasSubstr("not 90 % answered within 1ms even at 2 calls/s"));
}

TEST_F(LoadCliTest, IgnoresProbeWithoutCalls) {
  // The given time has less than half a call on average.
  for (const char* seed : {"1", "2", "3", "4", "5", "6"}) {
    EXPECT_EQ(Run({"--to", "de", "--find-rate", "--objective", "p50=30s", "--rates", "40", "40",
                   "--duration", "10ms", "--seed", seed, "--json"}),
              kExitOk)
        << err_;
    EXPECT_EQ(Number({"found_per_second"}), 40) << "seed " << seed;
    EXPECT_GT(Number({"calls", "measured"}), 0);
    EXPECT_THAT(out_, HasSubstr("\"found_is_ceiling\":true"));
  }
}

TEST_F(LoadCliTest, TimelineRatesAverageSeveralCalls) {
  EXPECT_EQ(Run({"--to", "de", "--schedule", "5..25:1s", "--json"}), kExitOk) << err_;
  google::protobuf::Value report;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(out_, &report).ok()) << out_;
  const auto& intervals = report.struct_value().fields().at("timeline").list_value().values();
  EXPECT_GT(intervals.size(), 0);
  for (const google::protobuf::Value& interval : intervals) {
    const auto& fields = interval.struct_value().fields();
    EXPECT_LT(fields.at("offered_per_second").number_value(), 50) << interval.DebugString();
  }
}

TEST_F(LoadCliTest, ReportsEachPartOfASchedule) {
  EXPECT_EQ(Run({"--to", "de", "--schedule", "100:100ms,200:100ms", "--arrivals", "constant"}),
            kExitOk)
      << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("100 calls/s for 100ms, 200 calls/s for 100ms"),
                          HasSubstr("schedule"), HasSubstr("from 0.1 s")));
  EXPECT_EQ(server_.translate_requests().size(), 30);
}

TEST_F(LoadCliTest, CsvHasALineForEachCall) {
  const test::TemporaryFolder folder;
  const std::string csv = folder.path() / "calls.csv";
  EXPECT_EQ(Run({"--to", "de", "--rate", "100", "--warmup", "50ms", "--duration", "100ms",
                 "--arrivals", "constant", "--csv", csv}),
            kExitOk)
      << err_;
  std::ifstream in(csv);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  ASSERT_THAT(lines, SizeIs(1 + 15));
  EXPECT_EQ(lines[0], "due_s,sent_s,ended_s,kind,status,left,texts,source_tokens,target_tokens");
  EXPECT_THAT(lines, ::testing::Contains(::testing::StartsWith("-0.050000,")));
  EXPECT_THAT(lines[1], HasSubstr(",OK,,1,"));
  EXPECT_EQ(Run({"--to", "de", "--rate", "100", "--calls", "1", "--csv", "/nowhere/x"}),
            kExitLocal);
  EXPECT_THAT(err_, HasSubstr("cannot write /nowhere/x"));
}

}  // namespace
}  // namespace linnet::client
