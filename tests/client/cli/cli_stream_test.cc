// Tests answers that are streamed to a terminal.
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "client/cli/cli.h"
#include "gmock/gmock.h"
#include "tests/client/cli/cli_fixture.h"

namespace linnet::client {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

// A fake terminal: `seen` is its content after each flush that changed it.
class Screen : public std::stringbuf {
 public:
  std::vector<std::string> seen;
  std::function<void()> on_change;

 protected:
  int sync() override {
    if (seen.empty() || str() != seen.back()) seen.push_back(str());
    if (on_change) on_change();
    return 0;
  }
};

class CliStreamTest : public CliTest {
 protected:
  CliStreamTest() { out_is_terminal_ = true; }

  int Watch(std::vector<std::string> arguments, const std::string& input = "") {
    std::istringstream in(input);
    std::ostream out(&screen_);
    const int exit = Run(arguments, in, out);
    out_ = screen_.str();
    return exit;
  }

  const std::vector<std::string> to_german_ = {"translate", "--from", "en", "--to",
                                               "de",        "ja",     "é"};
  Screen screen_;
};

TEST_F(CliStreamTest, StreamsAnswersToATerminal) {
  EXPECT_EQ(Watch(to_german_), kExitOk) << err_;
  EXPECT_THAT(screen_.seen,
              ElementsAre("[", "[d", "[de", "[de]", "[de] ", "[de] j", "[de] ja", "[de] ja\n",
                          "[de] ja\n[", "[de] ja\n[d", "[de] ja\n[de", "[de] ja\n[de]",
                          "[de] ja\n[de] ", "[de] ja\n[de] é", "[de] ja\n[de] é\n"));
}

TEST_F(CliStreamTest, FinalTerminalOutputEqualsPipeOutput) {
  const std::vector<std::vector<std::string>> commands = {
      {"translate", "--from", "en", "--to", "de"}, {"summarize", "--language", "en"}};
  for (const std::vector<std::string>& command : commands) {
    for (const std::string input : {"One.\n\n\tTwo.  \n", "One.", " \n", ""}) {
      screen_.str("");
      EXPECT_EQ(Watch(command, input), kExitOk);
      const std::string watched = out_;
      out_is_terminal_ = false;
      EXPECT_EQ(Run(command, input), kExitOk);
      out_is_terminal_ = true;
      EXPECT_EQ(out_, watched);
    }
  }
}

TEST_F(CliStreamTest, DoesNotStreamToPipesNorLists) {
  int parts = 0;
  server_.after_part = [&parts](auto&, int) {
    ++parts;
    return grpc::Status::OK;
  };
  const std::vector<std::string> to_german = {"translate", "--from", "en", "--to", "de"};
  const auto with = [&](const std::string& flag, const std::string& value) {
    std::vector<std::string> arguments = to_german;
    arguments.push_back(flag);
    if (!value.empty()) arguments.push_back(value);
    return arguments;
  };
  EXPECT_EQ(Watch(with("--n-best", "2"), "Yes."), kExitOk);
  EXPECT_EQ(Watch(with("--word-scores", ""), "Yes."), kExitOk);
  EXPECT_EQ(Watch(with("--json", ""), "Yes."), kExitOk);
  EXPECT_EQ(Watch(to_german, "Yes."), kExitOk);
  out_is_terminal_ = false;
  EXPECT_EQ(Run(to_german, "Yes."), kExitOk);
  EXPECT_EQ(parts, 0);
  EXPECT_THAT(server_.translate_requests(), SizeIs(5));
}

TEST_F(CliStreamTest, StopReportsProgress) {
  server_.after_part = [this](grpc::ServerContext& context, int sent) {
    const bool second = server_.translate_requests().size() == 2;
    while (second && sent == 3 && !context.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::OK;
  };
  screen_.on_change = [this] {
    if (screen_.str() == "[de] ja\n[de") stop_.request_stop();
  };
  EXPECT_EQ(Watch(to_german_), kExitCode + 1);
  EXPECT_EQ(out_, "[de] ja\n[de\n");
  EXPECT_EQ(err_,
            "linnet: CANCELLED: cancelled\n"
            "  of the answer to argument 2, the first 3 bytes are written\n"
            "  1 text was answered before\n");
}

TEST_F(CliStreamTest, ErrorAfterAPartStartsOnItsOwnLine) {
  server_.after_part = [](auto&, int parts) {
    return parts < 3 ? grpc::Status::OK
                     : ServerError(grpc::StatusCode::INTERNAL, "engine failed", "ENGINE_FAILED");
  };
  EXPECT_EQ(Watch(to_german_), kExitCode + 13);
  EXPECT_THAT(out_, EndsWith("\n"));
  EXPECT_THAT(err_, StartsWith("linnet: INTERNAL: engine failed\n"));
  EXPECT_THAT(err_, HasSubstr("of the answer to argument 1, the first 3 bytes are written"));
}

TEST_F(CliStreamTest, UnreadableTextIsAnErrorAfterEarlierAnswers) {
  EXPECT_EQ(Watch({"translate", "--from", "en", "--to", "de", "fine", "caf\xE9"}), kExitLocal);
  EXPECT_EQ(out_, "[de] fine\n");
  EXPECT_THAT(err_, HasSubstr("argument 2 is not UTF-8"));
}

TEST_F(CliStreamTest, ClosedTerminalEndsTheCall) {
  std::istringstream in;
  std::ostream closed(nullptr);
  EXPECT_EQ(Run(to_german_, in, closed), kExitLocal);
  EXPECT_THAT(err_, StartsWith("linnet: cannot write the output"));
  EXPECT_THAT(out_, IsEmpty());
}

}  // namespace
}  // namespace linnet::client
