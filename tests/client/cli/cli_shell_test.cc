// Tests `linnet shell` without its line editor, `linnet bench`, and help, man page and completions.
#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/cli/shell.h"
#include "gmock/gmock.h"
#include "tests/client/cli/cli_fixture.h"

namespace linnet::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// A LineReader that returns these lines; "^C" stands for the key.
class Typist final : public LineReader {
 public:
  explicit Typist(std::vector<std::string> lines) : lines_(lines.begin(), lines.end()) {}
  Got Read(const std::string& prompt, std::string* line) override {
    prompts.push_back(prompt);
    if (lines_.empty()) return Got::kEnd;
    *line = lines_.front();
    lines_.pop_front();
    return *line == "^C" ? Got::kInterrupt : Got::kLine;
  }
  std::vector<std::string> prompts;

 private:
  std::deque<std::string> lines_;
};

class CliShellTest : public CliTest {
 protected:
  CliShellTest() {
    *server_.models.add_models() = ModelOf("en-de", v1::TASK_TRANSLATE, "en", "de");
    *server_.models.add_models() = ModelOf("fr-nl", v1::TASK_TRANSLATE, "fr", "nl");
    *server_.models.add_models() = ModelOf("en-summary", v1::TASK_SUMMARIZE, "en", "en");
  }
  // Runs the shell with these lines as if typed at a terminal.
  int Type(std::vector<std::string> lines) {
    ClientOptions options;
    options.server = server_.address();
    Client client = std::move(Client::Create(options)).value();
    std::istringstream in;
    std::ostringstream out, err;
    Environment environment = {in, out, err, {}, true, stop_.get_token(), true};
    environment.renew_stop = [this] {
      if (!terminated_ && stop_.stop_requested()) stop_ = std::stop_source();
      return stop_.get_token();
    };
    v1::TranslateRequest request;
    request.set_target_language_code("de");
    typist_ = Typist(std::move(lines));
    const int exit = RunShell(client, request, typist_, environment);
    out_ = out.str();
    err_ = err.str();
    return exit;
  }

  Typist typist_{{}};
  bool terminated_ = false;
};

TEST_F(CliShellTest, AnswersLinesWithCurrentSettings) {
  EXPECT_EQ(
      Type({"one", "", ":from fr", ":to nl", "deux", ":summarize", "long", ":model en-de", "two",
            ":model en-summary", "longer", ":beam 3", ":to de", "three", ":quit", "no"}),
      kExitOk)
      << err_;
  EXPECT_EQ(out_, "[de] one\n[nl] deux\n[sum] long\n[] two\n[sum] longer\n[de] three\n");
  EXPECT_THAT(err_, IsEmpty());
  EXPECT_THAT(typist_.prompts,
              ElementsAre("de> ", "de> ", "de> ", "fr-de> ", "fr-nl> ", "fr-nl> ", "summarize> ",
                          "summarize> ", "en-de> ", "en-de> ", "en-summary> ", "en-summary> ",
                          "en-summary> ", "de> ", "de> "));
  EXPECT_EQ(server_.translate_requests().back().options().beam_size(), 3);
}

TEST_F(CliShellTest, ReportsMistakesAndContinues) {
  EXPECT_EQ(Type({":fly", ":to", ":beam many", ":to de", "caf\xE9", "two"}), kExitOk);
  EXPECT_EQ(out_, "[de] two\n");
  EXPECT_THAT(
      err_, AllOf(HasSubstr("no command :fly; :help lists them"), HasSubstr(":to needs a language"),
                  HasSubstr("\"many\" is no whole"), HasSubstr("is not UTF-8")));
}

TEST_F(CliShellTest, ShowsListsLikeTheCommand) {
  EXPECT_EQ(Type({":help", ":models"}), kExitOk);
  EXPECT_THAT(out_, AllOf(HasSubstr(":alignments"), HasSubstr("en-de       translate")));
  EXPECT_EQ(Type({":n-best 2", ":words", ":alignments", "one"}), kExitOk);
  const v1::TranslateRequest request = server_.translate_requests().back();
  EXPECT_EQ(request.options().n_best(), 2);
  EXPECT_TRUE(request.word_scores());
  EXPECT_TRUE(request.alignments());
}

TEST_F(CliShellTest, InterruptEndsAnswerButNotShell) {
  server_.on_translate = [this](grpc::ServerContext& context, const v1::TranslateRequest& request,
                                v1::TranslateResponse& response) {
    if (request.contents(0) == "slow") {
      stop_.request_stop();
      while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    }
    response.add_translations()->set_text(request.contents(0));
    response.mutable_translations(0)->add_segments();
    return grpc::Status::OK;
  };
  EXPECT_EQ(Type({"slow", "^C", "fast"}), kExitOk);
  EXPECT_EQ(out_, "fast\n");
  EXPECT_THAT(err_, HasSubstr("CANCELLED: cancelled"));
}

TEST_F(CliShellTest, SigtermEndsTheShell) {
  terminated_ = true;
  stop_.request_stop();
  EXPECT_EQ(Type({"one", "two"}), kExitCode + 1);
  EXPECT_THAT(out_, IsEmpty());
}

TEST_F(CliShellTest, WritesNoPromptsToAPipe) {
  EXPECT_EQ(Run({"shell", "--to", "de"}, "one\n:to nl\ntwo\n"), kExitOk) << err_;
  EXPECT_EQ(out_, "[de] one\n[nl] two\n");
  EXPECT_EQ(Run({"shell", "--to", "de"}, ":beam many\none\n"), kExitUsage);
}

TEST_F(CliShellTest, ScriptGetsTheExitStatusOfTheFirstLineThatFailed) {
  server_.on_translate = [](grpc::ServerContext&, const v1::TranslateRequest& request,
                            v1::TranslateResponse& response) {
    if (request.target_language_code() == "tlh")
      return ServerError(grpc::StatusCode::NOT_FOUND, "no such model", "MODEL_NOT_FOUND");
    response.add_translations()->set_text(request.contents(0));
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"shell", "--to", "tlh"}, "one\n"), kExitCode + 5);
  EXPECT_EQ(Run({"shell", "--to", "tlh"}, "one\n:to de\ntwo\n"), kExitCode + 5);
  EXPECT_EQ(out_, "two\n");
}

TEST_F(CliShellTest, BenchMeasuresOneCallerAndMany) {
  EXPECT_EQ(Run({"bench", "--to", "de", "--duration", "200ms", "--concurrency", "3"}), kExitOk)
      << err_;
  const std::vector<std::string> lines = absl::StrSplit(out_, '\n');
  ASSERT_THAT(lines, SizeIs(4)) << out_;
  EXPECT_THAT(lines[0], AllOf(HasSubstr("CALLS/S"), HasSubstr("MEDIAN"), HasSubstr("99%")));
  EXPECT_THAT(lines[1], testing::StartsWith("1  "));
  EXPECT_THAT(lines[2], testing::StartsWith("3  "));
  EXPECT_EQ(Run({"bench", "--language", "en"}), kExitUsage);
  EXPECT_EQ(Run({"bench", "--duration", "200ms", "Long."}), kExitOk) << err_;
  EXPECT_EQ(server_.summarize_requests().back().contents(0), "Long.");
  server_.on_translate = [](auto&, const auto&, auto&) {
    return ServerError(grpc::StatusCode::INTERNAL, "engine failed", "ENGINE_FAILED");
  };
  EXPECT_EQ(Run({"bench", "--to", "de", "--duration", "200ms"}), kExitCode + 13);
  EXPECT_THAT(err_, HasSubstr("engine failed"));
}

TEST_F(CliShellTest, EveryCommandHasHelpWithExamples) {
  EXPECT_EQ(Run({"--help"}), kExitOk);
  const std::string overview = out_;
  for (const char* command : {"translate", "summarize", "score", "detect", "models", "health",
                              "reload", "bench", "shell", "completion"}) {
    EXPECT_THAT(overview, HasSubstr(std::string("\n  ") + command + " "));
    EXPECT_EQ(Run({command, "--help"}), kExitOk);
    EXPECT_THAT(out_, AllOf(HasSubstr("Examples:"), HasSubstr(std::string("linnet ") + command)));
    const std::vector<std::string> lines = absl::StrSplit(overview + out_, '\n');
    for (const std::string& line : lines) {
      const auto begins = [](char byte) {
        return (byte & 0xC0) != 0x80;
      };  // true at the first byte of a character
      EXPECT_LE(std::count_if(line.begin(), line.end(), begins), 80) << line;
    }
  }
  EXPECT_THAT(overview, Not(HasSubstr("man-page")));
}

TEST_F(CliShellTest, ManPageAndCompletionsCoverEveryFlag) {
  EXPECT_EQ(Run({"man-page"}), kExitOk);
  const std::string page = out_;
  EXPECT_THAT(page, testing::StartsWith(".TH LINNET 1"));
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_EQ(Run({"completion", shell}), kExitOk);
    for (const char* word : {"translate", "reload", "resume", "no-repeat-ngram-size", "token-file",
                             "long-input", "no-history"}) {
      EXPECT_THAT(out_, HasSubstr(word)) << shell;
    }
  }
  for (const char* flag :
       {"\\fB\\-\\-resume\\fR", "\\fB\\-o\\fR", "\\fIbatch|normal|interactive\\fR",
        "\\fB\\-\\-tls\\-ca\\fR \\fIFILE\\fR", "LINNET_TOKEN_FILE"}) {
    EXPECT_THAT(page, HasSubstr(flag));
  }
}

}  // namespace
}  // namespace linnet::client
