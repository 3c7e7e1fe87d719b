// Tests help, man page and completions of the commands, and `linnet bench`.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "tests/client/cli/cli_fixture.h"

namespace linnet::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class CliHelpTest : public CliTest {
 protected:
  CliHelpTest() {
    *server_.models.add_models() = ModelOf("en-de", v1::TASK_TRANSLATE, "en", "de");
    *server_.models.add_models() = ModelOf("fr-nl", v1::TASK_TRANSLATE, "fr", "nl");
    *server_.models.add_models() = ModelOf("en-summary", v1::TASK_SUMMARIZE, "en", "en");
  }
};

TEST_F(CliHelpTest, BenchMeasuresOneCallerAndMany) {
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

TEST_F(CliHelpTest, EveryCommandHasHelpWithExamples) {
  EXPECT_EQ(Run({"--help"}), kExitOk);
  const std::string overview = out_;
  for (const char* command : {"translate", "summarize", "score", "detect", "models", "health",
                              "reload", "bench", "completion"}) {
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

TEST_F(CliHelpTest, ManPageAndCompletionsCoverEveryFlag) {
  EXPECT_EQ(Run({"man-page"}), kExitOk);
  const std::string page = out_;
  EXPECT_THAT(page, testing::StartsWith(".TH LINNET 1"));
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_EQ(Run({"completion", shell}), kExitOk);
    for (const char* word :
         {"translate", "reload", "resume", "no-repeat-ngram-size", "token-file", "long-input"}) {
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
