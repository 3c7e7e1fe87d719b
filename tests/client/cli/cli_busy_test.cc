// Tests of runs over files against servers that are slow or busy: a file is a document.
#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/request_window.h"
#include "gmock/gmock.h"
#include "tests/client/cli/cli_fixture.h"

namespace linnet::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class CliBusyTest : public CliFolderTest {
 protected:
  static std::string Lines(int count, const std::string& mark = "") {
    std::string lines;
    for (int line = 0; line < count; ++line) absl::StrAppend(&lines, mark, "line ", line, "\n");
    return lines;
  }

  static absl::Duration TimeLeft(const grpc::ServerContext& context) {
    return absl::FromChrono(context.deadline()) - absl::Now();
  }

  static void Answer(const v1::TranslateRequest& request, v1::TranslateResponse& response) {
    for (const std::string& content : request.contents())
      response.add_translations()->set_text(absl::StrCat("[de] ", content));
  }

  // Forbids gRPC's own retries, which take time.
  static grpc::Status RefusedForGood(grpc::ServerContext& context, grpc::StatusCode code,
                                     const std::string& reason) {
    context.AddTrailingMetadata("grpc-retry-pushback-ms", "-1");
    return ServerError(code, "not now", reason);
  }

  // Like a server that needs `per_text`, and grants no deadline after `max_deadline`.
  void AnswerSlowly(absl::Duration per_text, absl::Duration max_deadline) {
    server_.on_translate = [=, this](grpc::ServerContext& context,
                                     const v1::TranslateRequest& request,
                                     v1::TranslateResponse& response) {
      const absl::Duration needed = per_text * request.contents_size();
      if (std::min(TimeLeft(context), max_deadline) < needed) {
        ++refused_;
        return RefusedForGood(context, grpc::StatusCode::DEADLINE_EXCEEDED, "DEADLINE_TOO_SHORT");
      }
      Answer(request, response);
      return grpc::Status::OK;
    };
  }

  std::atomic<int> refused_ = 0;
};

TEST_F(CliBusyTest, FileOutlastsTheTimeoutOfACall) {
  AnswerSlowly(absl::Seconds(2), absl::Hours(1));
  EXPECT_EQ(Translate({}, Lines(300)), kExitOk) << err_;
  EXPECT_EQ(out_, Lines(300, "[de] "));
  EXPECT_EQ(refused_, 0);
  EXPECT_EQ(Translate({"--document"}, Lines(300)), kExitOk) << err_;
  EXPECT_EQ(Translate({"--file", File("in", Lines(300))}), kExitOk) << err_;
  EXPECT_EQ(Translate({"--jsonl"}, "{\"text\": \"x\"}\n"), kExitOk) << err_;
}

TEST_F(CliBusyTest, RequestsShrinkToWhatIsAnsweredInTime) {
  AnswerSlowly(absl::Seconds(10), absl::Seconds(45));
  EXPECT_EQ(Translate({"-o", Path("out")}, Lines(300)), kExitOk) << err_;
  EXPECT_EQ(Content("out"), Lines(300, "[de] "));
  EXPECT_GT(refused_, 0);
  EXPECT_LT(refused_, 20) << "a size that did not fit is not sent again and again";
  EXPECT_THAT(err_, IsEmpty());
}

TEST_F(CliBusyTest, TimeoutThatIsSetIsKept) {
  AnswerSlowly(absl::Seconds(20), absl::Hours(1));
  EXPECT_EQ(Translate({"--timeout", "30s"}, Lines(10)), kExitOk) << err_;
  EXPECT_EQ(out_, Lines(10, "[de] "));
  for (const bool by_variable : {false, true}) {
    if (by_variable) variables_["LINNET_TIMEOUT"] = "10s";
    std::vector<std::string> flags = {"-o", Path("none"), "--force"};
    if (!by_variable) flags.insert(flags.end(), {"--timeout", "10s"});
    EXPECT_EQ(Translate(flags, Lines(10)), kExitCode + 4);
    EXPECT_THAT(err_, AllOf(HasSubstr("DEADLINE_TOO_SHORT"), Not(HasSubstr("--resume"))));
  }
}

TEST_F(CliBusyTest, RunGivesWayToItsOwnRequests) {
  // Admits one request at a time: the others of the run are shed.
  std::atomic<int> running = 0;
  server_.on_translate = [&](grpc::ServerContext& context, const v1::TranslateRequest& request,
                             v1::TranslateResponse& response) {
    if (running++ > 0) {
      --running;
      ++refused_;
      return RefusedForGood(context, grpc::StatusCode::RESOURCE_EXHAUSTED, "WAITED_TOO_LONG");
    }
    // Until another request of the run has been shed, so that there always is one.
    if (request.contents(0) == "line 0") {
      while (refused_ == 0) absl::SleepFor(absl::Milliseconds(1));
    }
    Answer(request, response);
    --running;
    return grpc::Status::OK;
  };
  EXPECT_EQ(Translate({"-o", Path("out")}, Lines(1000)), kExitOk) << err_;
  EXPECT_EQ(Content("out"), Lines(1000, "[de] "));
  EXPECT_GT(refused_, 0);
}

TEST_F(CliBusyTest, RunWaitsWhileServerIsBusy) {
  for (const auto& [code, reason] :
       {std::pair(grpc::StatusCode::RESOURCE_EXHAUSTED, "TOO_MUCH_WORK"),
        std::pair(grpc::StatusCode::DEADLINE_EXCEEDED, "DEADLINE_TOO_CLOSE")}) {
    refused_ = 0;
    server_.on_translate = [&, code = code, reason = std::string(reason)](
                               grpc::ServerContext& context, const v1::TranslateRequest& request,
                               v1::TranslateResponse& response) {
      if (refused_ < 3) {
        ++refused_;
        return RefusedForGood(context, code, reason);
      }
      Answer(request, response);
      return grpc::Status::OK;
    };
    EXPECT_EQ(Translate({}, Lines(3)), kExitOk) << err_;
    EXPECT_EQ(out_, Lines(3, "[de] "));
    // An argument is a call, whose error the caller gets.
    refused_ = 0;
    EXPECT_EQ(Run({"translate", "--from", "en", "--to", "de", "one"}),
              kExitCode + static_cast<int>(code));
  }
}

TEST_F(CliBusyTest, RunEndsAfterTimeoutWithoutAnAnswer) {
  server_.on_translate = [&](grpc::ServerContext& context, const auto&, auto&) {
    return RefusedForGood(context, grpc::StatusCode::RESOURCE_EXHAUSTED, "TOO_MUCH_WORK");
  };
  EXPECT_EQ(Translate({"--timeout", "250ms", "-o", Path("out")}, Lines(3)), kExitCode + 8);
  EXPECT_THAT(err_,
              AllOf(StartsWith("linnet: RESOURCE_EXHAUSTED: not now"), Not(HasSubstr("--resume"))));
}

TEST_F(CliBusyTest, StopEndsTheWaitForABusyServer) {
  server_.on_translate = [&](grpc::ServerContext& context, const v1::TranslateRequest& request,
                             v1::TranslateResponse& response) {
    if (request.contents(0) == "line 0") {
      Answer(request, response);
      return grpc::Status::OK;
    }
    stop_.request_stop();
    return RefusedForGood(context, grpc::StatusCode::RESOURCE_EXHAUSTED, "TOO_MUCH_WORK");
  };
  EXPECT_EQ(Translate({"-o", Path("out")}, Lines(65)), kExitCode + 1);
  EXPECT_THAT(err_, StartsWith("linnet: CANCELLED: cancelled"));
}

TEST_F(CliBusyTest, ScoresAndSummariesWaitAsWell) {
  std::atomic<int> calls = 0;
  server_.on_score = [&](grpc::ServerContext& context, const v1::ScoreRequest& request,
                         v1::ScoreResponse& response) {
    if (++calls == 1 || TimeLeft(context) < absl::Minutes(2))
      return RefusedForGood(context, grpc::StatusCode::DEADLINE_EXCEEDED, "DEADLINE_TOO_CLOSE");
    for (int i = 0; i < request.pairs_size(); ++i) response.add_scores()->set_score(-1);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"score", "--from", "en", "--to", "de"}, "a\tb\nc\td\n"), kExitOk) << err_;
  EXPECT_EQ(out_, "-1.0000\tb\n-1.0000\td\n");
  server_.on_summarize = [&](grpc::ServerContext& context, const v1::SummarizeRequest&,
                             v1::SummarizeResponse& response) {
    if (TimeLeft(context) < absl::Minutes(2))
      return RefusedForGood(context, grpc::StatusCode::DEADLINE_EXCEEDED, "DEADLINE_TOO_SHORT");
    response.add_summaries()->set_text("title");
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"summarize", "--language", "en"}, "text\n"), kExitOk) << err_;
  EXPECT_EQ(out_, "title\n");
}

TEST(RequestWindowTest, ShrinksAndGrows) {
  RequestWindow window;
  EXPECT_EQ(window.max_texts(), 64u);
  EXPECT_EQ(window.max_in_flight(), 4u);
  window.Refused(64, /*alone=*/false);
  EXPECT_EQ(window.max_in_flight(), 2u);
  EXPECT_EQ(window.max_texts(), 64u) << "its own requests may be the reason";
  window.Refused(64, /*alone=*/true);
  EXPECT_EQ(window.max_in_flight(), 1u);
  EXPECT_EQ(window.max_texts(), 32u);
  for (int i = 0; i < 8 * 4; ++i) window.Succeeded();
  EXPECT_EQ(window.max_texts(), 64u);
  EXPECT_EQ(window.max_in_flight(), 4u);
  window.RecordTimeout(64);
  for (int i = 0; i < 800; ++i) window.Succeeded();
  EXPECT_EQ(window.max_texts(), 32u) << "64 were too many";
  EXPECT_EQ(window.max_in_flight(), 4u);
  for (int i = 0; i < 20; ++i) window.Refused(1, /*alone=*/true);
  EXPECT_EQ(window.max_texts(), 1u);
  EXPECT_EQ(window.max_in_flight(), 1u);
  EXPECT_EQ(window.pause(), absl::Seconds(5));
  window.Succeeded();
  EXPECT_EQ(window.pause(), absl::Milliseconds(50));
}

}  // namespace
}  // namespace linnet::client
