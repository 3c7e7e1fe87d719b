// Tests the terminal output, the flags and the help of linnet-load.
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "client/command/exit_status.h"
#include "client/load/cli.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_server.h"
#include "tests/client/load/load_cli_fixture.h"

namespace linnet::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class LoadFlagsTest : public LoadCliTest {};

TEST_F(LoadFlagsTest, ReportsMissingMetricsPageBeforeTheRun) {
  const ClosedPort closed;
  EXPECT_EQ(Run({"--to", "de", "--rate", "100", "--calls", "5", "--metrics",
                 "http://" + closed.address() + "/metrics"}),
            kExitLocal);
  EXPECT_THAT(err_, HasSubstr("cannot read http://" + closed.address()));
  EXPECT_THAT(server_.translate_requests(), SizeIs(0));
}

TEST_F(LoadFlagsTest, ShowsProgressOnATerminal) {
  std::ostringstream out, err;
  LoadEnvironment environment = {
      out, err, {{"LINNET_SERVER", server_.address()}}, stop_.get_token(), true};
  EXPECT_EQ(RunLoadCli({"--to", "de", "--rate", "50", "--duration", "1200ms"}, environment),
            kExitOk);
  EXPECT_THAT(err.str(), AllOf(HasSubstr("in flight"), HasSubstr("answered/s"),
                               HasSubstr("0 failed"), HasSubstr("\r\033[K")));
  const std::vector<std::string> shown = absl::StrSplit(err.str(), "\r\033[K");
  for (const std::string& line : shown) EXPECT_LT(line.size(), 80) << line;
  std::ostringstream narrow;
  LoadEnvironment small = {out,  narrow, {{"LINNET_SERVER", server_.address()}}, stop_.get_token(),
                           true, 40};
  EXPECT_EQ(RunLoadCli({"--to", "de", "--rate", "50", "--duration", "1200ms"}, small), kExitOk);
  EXPECT_THAT(narrow.str(), AllOf(HasSubstr("answered/s"), Not(HasSubstr("in flight"))));
  EXPECT_EQ(Run({"--to", "de", "--rate", "50", "--duration", "700ms"}), kExitOk);
  EXPECT_EQ(err_, "") << "no progress without a terminal";
}

TEST_F(LoadFlagsTest, UnreachableServerFailsAtOnce) {
  const ClosedPort closed;
  EXPECT_EQ(Run({"--to", "de", "--rate", "5", "--server", closed.address()}), kExitCode + 14);
  EXPECT_THAT(err_, HasSubstr("cannot reach " + closed.address()));
  EXPECT_EQ(out_, "");
}

TEST_F(LoadFlagsTest, RefusesInvalidFlagsWithHint) {
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"", "--find-rate for an open loop, or --concurrency N"},
      {"--rate 5", "--to LANGUAGE is needed"},
      {"--rate 5 --model en-de", "--to LANGUAGE is needed to translate, also with --model"},
      {"--rate 5 --task summarize --to de", "--to excludes --task summarize"},
      {"--rate fast --to de", "--rate"},
      {"--rate 0 --to de", "--rate"},
      {"--rate 5 --concurrency 3 --to de", "--rate excludes --concurrency"},
      {"--concurrency 3 --arrivals constant --to de", "--arrivals requires an open loop"},
      {"--concurrency 3 --max-in-flight 9 --to de", "--concurrency excludes --max-in-flight"},
      {"--concurrency 3 --drain 9s --to de", "--concurrency excludes --drain"},
      {"--rate 5 --to de --schedule 5:1s", "excludes"},
      {"--schedule 5:1s --to de --duration 3s", "excludes"},
      {"--schedule 5-10:1s --to de", "\"5-10:1s\" is no part of a schedule"},
      {"--find-rate --to de", "--objective pNN=TIME"},
      {"--find-rate --to de --objective 2s", "--objective pNN=TIME"},
      {"--find-rate --to de --objective p99=2s --rates 9 3", "the maximum is below the minimum"},
      {"--rate 5 --to de --objective p0=2s", "no objective like"},
      {"--rate 5 --to de --objective p99=soon", "\"soon\" is no duration"},
      {"--rate 5 --to de --objective inf", "\"inf\" is not above 0 and at most 24h"},
      {"--rate nan --to de", "--rate: Value nan is not a number"},
      {"--rate 5 --to de --cancel nan", "--cancel: Value nan is not a number"},
      {"--find-rate --to de --objective p99=2s --rates nan 3", "--rates: Value nan is not"},
      {"--concurrency 010 --to de", "--concurrency: Value 010 begins with 0"},
      {"--rate 5 --to de --seed -1", "--seed: Value -1 is below 0"},
      {"--rate 5 --to de --rates 1 2", "--rates requires --find-rate"},
      {"--rate 5 --to de --cancel 0.6 --disconnect 0.5", "together are more than 1"},
      {"--rate 5 --to de --cancel 2", "--cancel"},
      {"--rate 5 --to de --disconnect 0.5 --server unix:/x", "--disconnect needs one server"},
      {"--rate 5 --to de --disconnect 0.5 --server ipv4:127.0.0.1:1",
       "--disconnect needs one server"},
      {"--rate 5 --to de --disconnect 0.5 --server ipv6:[::1]:1", "--disconnect needs one server"},
      {"--rate 5 --to de --disconnect 0.5 --tls", "--disconnect excludes TLS and tokens"},
      {"--rate 5 --mix /nowhere", "/nowhere"},
      {"--rate 5 --arrivals random --to de", "--arrivals"},
      {"--rate 5 --to de --words 9 3", "--words 9 3: the maximum is below the minimum"},
      {"--rate 5 --to de --duration soon", "\"soon\" is no duration"},
      {"--rate 5 --to de --warmup -3", "\"-3\" is not between 0 and 24h"},
      {"--rate 5 --to de --deadline 0", "timeout is 0"},
      {"--rate 5 --to de --file /nowhere", "/nowhere"},
      {"--rate 5 --to de --server nowhere", "\"nowhere\" is not HOST:PORT"},
      {"--frob", "--frob"},
  };
  for (const auto& [line, message] : refused) {
    std::istringstream words(line);
    std::vector<std::string> arguments;
    for (std::string word; words >> word;) arguments.push_back(word);
    // LINNET_SERVER is not set, so that the server in the arguments is the only one.
    std::ostringstream out, err;
    EXPECT_EQ(RunLoadCli(arguments, {out, err, {}, stop_.get_token()}), kExitUsage) << line;
    EXPECT_THAT(err.str(), AllOf(HasSubstr("linnet-load: "), HasSubstr(message))) << line;
    EXPECT_EQ(out.str(), "") << line;
  }
}

TEST_F(LoadFlagsTest, HelpListsEveryFlagAndExamples) {
  EXPECT_EQ(Run({"--help"}), kExitOk);
  EXPECT_THAT(out_, AllOf(HasSubstr("--objective"), HasSubstr("Examples:"), HasSubstr("SIGINT"),
                          HasSubstr("--arrivals poisson|constant"), Not(HasSubstr("Excludes"))));
  const std::vector<std::string> lines = absl::StrSplit(out_, '\n');
  for (const std::string& line : lines) EXPECT_LE(line.size(), 82) << line;  // with an ellipsis
  EXPECT_EQ(Run({"--version"}), kExitOk);
  EXPECT_THAT(out_, HasSubstr("linnet-load 0."));
}

}  // namespace
}  // namespace linnet::client
