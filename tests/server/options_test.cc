#include "server/config/options.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/config/address.h"
#include "tests/support/places.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace linnet::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ParsedOptions Parse(std::vector<const char*> flags,
                    const std::vector<std::string>& environment = {}) {
  flags.insert(flags.begin(), "linnet-server");
  return ParseOptions(static_cast<int>(flags.size()), flags.data(), environment);
}

TEST(OptionsTest, DefaultsListenOnLoopback) {
  const ParsedOptions parsed = Parse({"--models", "some/bundles"});
  ASSERT_TRUE(parsed.run);
  EXPECT_EQ(parsed.options.models, "some/bundles");
  EXPECT_EQ(parsed.options.listen, "127.0.0.1:50051");
  EXPECT_EQ(parsed.options.metrics_listen, "127.0.0.1:9464");
  EXPECT_EQ(parsed.options.device, "cpu");
  EXPECT_EQ(parsed.options.compute, "auto");
}

TEST(OptionsTest, ParsesEveryFlag) {
  const ParsedOptions parsed = Parse({"--models=m",
                                      "--listen=0.0.0.0:0",
                                      "--metrics-listen=[::1]:9",
                                      "--device=cuda",
                                      "--compute=bfloat16",
                                      "--threads=3",
                                      "--max-model-bytes=5000",
                                      "--max-batch-rows=7",
                                      "--max-admitted-tokens=1234",
                                      "--max-request-memory=33554432",
                                      "--overload-max-queue-delay=0.5",
                                      "--drain-timeout=1.5",
                                      "--lame-duck=2.5",
                                      "--max-deadline=33",
                                      "--failure-record=f",
                                      "--engine-stall-timeout=7",
                                      "--log-level=error",
                                      "--log-format=json",
                                      "--tls-cert=c",
                                      "--tls-key=k",
                                      "--tls-client-ca=a",
                                      "--tokens=t",
                                      "--request-timeout=30"});
  ASSERT_TRUE(parsed.run) << parsed.text;
  const Options& options = parsed.options;
  EXPECT_EQ(options.listen, "0.0.0.0:0");
  EXPECT_EQ(options.metrics_listen, "[::1]:9");
  EXPECT_EQ(options.device, "cuda");
  EXPECT_EQ(options.compute, "bfloat16");
  EXPECT_EQ(options.threads, 3);
  EXPECT_EQ(options.max_model_bytes, 5000);
  EXPECT_EQ(options.max_batch_rows, 7);
  EXPECT_EQ(options.admission.max_tokens, 1234);
  EXPECT_EQ(options.admission.max_bytes, 32 << 20);
  EXPECT_EQ(options.batcher.shed.max_wait, absl::Milliseconds(500));
  EXPECT_EQ(options.batcher.shed.interval, absl::Milliseconds(1250)) << "2.5 times that";
  EXPECT_EQ(options.security.max_transport_bytes, 32 << 20) << "follows max-request-memory";
  EXPECT_EQ(options.security.max_connection_age_grace, absl::Seconds(33)) << "is max-deadline";
  EXPECT_EQ(options.text.max_contents, 2048);
  EXPECT_EQ(options.text.max_segments, 2048);
  EXPECT_EQ(options.text.max_text_bytes, 128 << 10);
  EXPECT_EQ(options.lame_duck, absl::Milliseconds(2500));
  EXPECT_EQ(options.drain_timeout, absl::Milliseconds(1500));
  EXPECT_EQ(options.text.max_deadline, absl::Seconds(33));
  EXPECT_EQ(options.text.default_deadline, absl::Seconds(33)) << "at most max-deadline";
  EXPECT_EQ(options.failure_record, "f");
  EXPECT_EQ(options.engine_stall_timeout, absl::Seconds(7));
  EXPECT_EQ(options.engine_load_timeout, absl::Seconds(35)) << "five times that";
  EXPECT_EQ(options.log_level, "error");
  EXPECT_EQ(options.log_format, "json");
  EXPECT_EQ(options.text.max_inflight_lines, 8);
  EXPECT_EQ(options.security.tls_certificate, "c");
  EXPECT_EQ(options.security.tls_key, "k");
  EXPECT_EQ(options.security.tls_client_ca, "a");
  EXPECT_EQ(options.security.tokens, "t");
  EXPECT_EQ(options.security.request_timeout, absl::Seconds(30));
  EXPECT_EQ(options.security.keepalive, absl::Seconds(30)) << "at most request-timeout";
}

TEST(OptionsTest, DefaultRowsDependOnTheDevice) {
  EXPECT_EQ(Parse({"--models=m"}).options.max_batch_rows, 160);
  EXPECT_EQ(Parse({"--models=m", "--device=cuda"}).options.max_batch_rows, 128 * 5);
  EXPECT_EQ(Parse({"--models=m", "--device=cuda", "--max-batch-rows=32"}).options.max_batch_rows,
            32);
}

TEST(OptionsTest, EncoderCacheFollowsTheRows) {
  EXPECT_EQ(EncoderCacheTokens(160), 16384);
  EXPECT_EQ(EncoderCacheTokens(640), 16384);
  EXPECT_EQ(EncoderCacheTokens(32), 4096);
  EXPECT_EQ(EncoderCacheTokens(4096), 102400);
}

TEST(OptionsTest, TextThreadsFollowTheCores) {
  EXPECT_EQ(TextThreads(0), 2) << "unknown";
  EXPECT_EQ(TextThreads(16), 2);
  EXPECT_EQ(TextThreads(64), 8);
  EXPECT_EQ(TextThreads(256), 16);
}

TEST(OptionsTest, LoadOnDemandNamesTheModelsThatStay) {
  EXPECT_FALSE(Parse({"--models=m"}).options.load_on_demand);
  EXPECT_FALSE(Parse({"--models=m", "--load-on-demand=false"}).options.load_on_demand);
  const Options all = Parse({"--models=m", "--load-on-demand", "true"}).options;
  EXPECT_TRUE(all.load_on_demand);
  EXPECT_EQ(all.pinned_models, "");
  const Options some = Parse({"--models=m", "--load-on-demand", "except=a,b"}).options;
  EXPECT_TRUE(some.load_on_demand);
  EXPECT_EQ(some.pinned_models, "a,b");
}

TEST(OptionsTest, ThereAreFewSettings) {
  EXPECT_LE(Parse({"--models=m"}).settings.size(), 40) << "make a constant of one, or of the new";
}

TEST(OptionsTest, HelpAndVersionSucceed) {
  for (const char* flag : {"--help", "--help-all", "--version"}) {
    EXPECT_EQ(Parse({flag}).exit_status, 0);
    EXPECT_FALSE(Parse({flag}).run);
  }
}

TEST(OptionsTest, HelpShowsCommonSettingsAndHelpAllTheRest) {
  const std::string common = Parse({"--help"}).text, all = Parse({"--help-all"}).text;
  int shown = 0;
  for (const Setting& setting : Parse({"--models=m"}).settings) {
    const std::string flag = absl::StrCat("  --", setting.name, " ");
    EXPECT_THAT(all, HasSubstr(flag));
    EXPECT_THAT(all, HasSubstr(absl::StrCat("\n", setting.group, ":\n")));
    shown += absl::StrContains(common, flag);
  }
  EXPECT_EQ(shown, 13);
  EXPECT_THAT(common, AllOf(HasSubstr("  --models "), HasSubstr("--help-all")));
}

struct BadFlag {
  std::vector<const char*> flags;
  const char* says;

  friend void PrintTo(const BadFlag& bad, std::ostream* out) {
    *out << (bad.flags.empty() ? "no flags" : bad.flags.back());
  }
};
class BadFlagTest : public ::testing::TestWithParam<BadFlag> {};

TEST_P(BadFlagTest, IsRefusedWithStatusTwo) {
  const ParsedOptions parsed = Parse(GetParam().flags);
  EXPECT_FALSE(parsed.run);
  EXPECT_EQ(parsed.exit_status, 2);
  EXPECT_THAT(parsed.text, HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadFlagTest,
    ::testing::Values(BadFlag{{}, "--models"}, BadFlag{{"--models=m", "--colour=red"}, "--colour"},
                      BadFlag{{"--models=m", "--listen=here"}, "not HOST:PORT"},
                      BadFlag{{"--models=m", "--listen=127.0.0.1:99999"}, "65535"},
                      BadFlag{{"--models=m", "--listen=:80"}, "not HOST:PORT"},
                      BadFlag{{"--models=m", "--metrics-listen=::1:80"}, "[::1]:0"},
                      BadFlag{{"--models=m", "--listen=[::1:80"}, "not HOST:PORT"},
                      BadFlag{{"--models=m", "--listen=::1]:80"}, "not HOST:PORT"},
                      BadFlag{{"--models=m", "--listen=[]:80"}, "not HOST:PORT"},
                      BadFlag{{"--models=m", "--max-batch-rows=-1"}, "--max-batch-rows"},
                      BadFlag{{"--models=m", "--threads=-1"}, "--threads"},
                      BadFlag{{"--models=m", "--max-batch-rows=many"}, "--max-batch-rows"},
                      BadFlag{{"--models=m", "--drain-timeout=-1"}, "--drain-timeout"},
                      BadFlag{{"--models=m", "--lame-duck=nan"}, "Value nan is not a number"},
                      BadFlag{{"--models=m", "--threads=010"}, "Value 010 begins with 0"},
                      BadFlag{{"--models=m", "--load-on-demand=a"},
                              "false, true or except=NAME,NAME"},
                      BadFlag{{"--models=m", "--load-on-demand=except="}, "except=NAME,NAME"},
                      BadFlag{{"--models=m", "--tls-cert=c"}, "--tls-key"},
                      BadFlag{{"--models=m", "--tls-client-ca=c"}, "--tls-cert"},
                      BadFlag{{"--models=m", "--allow-missing=perhaps"}, "--allow-missing"},
                      BadFlag{{"--models=m", "--max-idle=60"},
                              "the setting \"max-idle\" was removed: it is max-connection-age"},
                      BadFlag{{"--models=m", "--text-threads", "4"},
                              "\"text-threads\" was removed: it follows from the number of cores"},
                      BadFlag{{"--models=m", "--log-format=xml"}, "json"},
                      BadFlag{{"--models=m", "--log-level=loud"}, "warning"}));

struct SettingsTest : ::testing::Test {
  std::string File(const std::string& text) {
    const std::filesystem::path path = folder.path() / "linnet.conf";
    std::ofstream(path) << text;
    return path.string();
  }
  const test::TemporaryFolder folder;
};

TEST_F(SettingsTest, FlagOverridesEnvironmentOverridesFile) {
  const std::string file = absl::StrCat(
      "--config=",
      File("models = \"m\"\nmax-batch-rows = 1\nthreads = 1\n# words\ndrain-timeout = 1\n"));
  const std::vector<std::string> environment = {"LINNET_SERVER_MAX_BATCH_ROWS=2",
                                                "LINNET_SERVER_THREADS=2", "OTHER=3"};
  const ParsedOptions parsed = Parse({"--max-batch-rows=3", file.c_str()}, environment);
  ASSERT_TRUE(parsed.run) << parsed.text;
  EXPECT_EQ(parsed.options.max_batch_rows, 3);
  EXPECT_EQ(parsed.options.threads, 2);
  EXPECT_EQ(parsed.options.drain_timeout, absl::Seconds(1));
  EXPECT_EQ(parsed.options.models, "m");
}

TEST_F(SettingsTest, EnvironmentCanNameTheFile) {
  const ParsedOptions parsed =
      Parse({}, {absl::StrCat("LINNET_SERVER_CONFIG=", File("models = m\n"))});
  ASSERT_TRUE(parsed.run) << parsed.text;
  EXPECT_EQ(parsed.options.models, "m");
}

TEST_F(SettingsTest, RefusesUnknownNamesFromAnySource) {
  const ParsedOptions file = Parse({"--config", File("colour = red\n").c_str()});
  EXPECT_EQ(file.exit_status, 2);
  EXPECT_THAT(file.text, HasSubstr("\"colour\""));
  const ParsedOptions environment = Parse({"--models=m"}, {"LINNET_SERVER_COLOUR=red"});
  EXPECT_EQ(environment.exit_status, 2);
  EXPECT_THAT(environment.text, HasSubstr("LINNET_SERVER_COLOUR"));
  const ParsedOptions removed = Parse({"--models=m"}, {"LINNET_SERVER_SEND_TIMEOUT=5"});
  EXPECT_EQ(removed.exit_status, 2);
  EXPECT_THAT(removed.text, HasSubstr("the environment has LINNET_SERVER_SEND_TIMEOUT: the setting "
                                      "\"send-timeout\" was removed: it is request-timeout"));
  EXPECT_EQ(Parse({"--models=m", "--config=/no/such/file"}).exit_status, 2);
  EXPECT_EQ(Parse({"--config", File("[part]\nmax-batch-rows = 3\n").c_str()}).exit_status, 2);
  EXPECT_EQ(Parse({"--config", File("models = m\nmax-batch-rows = many\n").c_str()}).exit_status,
            2);
}

TEST_F(SettingsTest, PrintedConfigParsesToTheSameSettings) {
  const ParsedOptions first = Parse({"--models=some dir", "--max-batch-rows=7", "--lame-duck=2.5",
                                     "--allow-missing=true", "--print-config"});
  EXPECT_EQ(first.exit_status, 0);
  EXPECT_FALSE(first.run);
  EXPECT_THAT(first.text, HasSubstr("\nmax-batch-rows = \"7\"\n"));
  const std::string file = absl::StrCat("--config=", File(first.text));
  EXPECT_EQ(Parse({file.c_str(), "--print-config"}).text, first.text);
  const ParsedOptions again = Parse({file.c_str()});
  ASSERT_TRUE(again.run) << again.text;
  EXPECT_EQ(again.options.lame_duck, absl::Milliseconds(2500));
  EXPECT_EQ(again.options.models, "some dir");
}

TEST_F(SettingsTest, PrintedConfigKeepsEveryCharacter) {
  for (const char* name : {"a#b", "a # b", "a\"b", "a'b", "a;b", "[a]", "[a", "a = b", "a, b"}) {
    const std::string models = absl::StrCat("--models=", name);
    const std::string printed = Parse({models.c_str(), "--print-config"}).text;
    const ParsedOptions again = Parse({"--config", File(printed).c_str()});
    ASSERT_TRUE(again.run) << again.text;
    EXPECT_EQ(again.options.models, name);
  }
}

TEST_F(SettingsTest, FileTakesAddressesOfIpv6WithoutQuotes) {
  const ParsedOptions parsed =
      Parse({"--config", File("models = m  # a folder\nlisten = [::]:5\nthreads=3\r\n").c_str()});
  ASSERT_TRUE(parsed.run) << parsed.text;
  EXPECT_EQ(parsed.options.models, "m");
  EXPECT_EQ(parsed.options.listen, "[::]:5");
  EXPECT_EQ(parsed.options.threads, 3);
}

TEST_F(SettingsTest, FileIsRefusedWithItsLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"load-on-demand\n", ":1: \"load-on-demand\" is neither NAME = VALUE nor a comment"},
      {"\nx\n", ":2: \"x\" is neither"},
      {"[part]\nmodels = m\n", ":1: \"[part]\" is neither"},
      {"models = m\nmodels = n\n", ":2: models is set a second time"},
      {"models = \"m\n", ":1: models has a value that begins with a quote"},
      {"load-on-demand = except=a,b\n", ":1: load-on-demand has several values: quote"},
      {"models = m\nmax-idle = 60\n", ":2: the setting \"max-idle\" was removed: it is max-con"},
      {"models = some dir\n", ":1: models has several values: quote"},
      {"config = m\n", ":1: there is no setting \"config\""},
  };
  for (const auto& [text, message] : cases) {
    const ParsedOptions parsed = Parse({"--config", File(text).c_str()});
    EXPECT_EQ(parsed.exit_status, 2);
    EXPECT_THAT(parsed.text, HasSubstr(message));
  }
}

// The rows of docs/SETTINGS.md without their last cell, which says who changes a setting, when and
// to what; with the headings of the groups.
std::vector<std::string> RowsOfPage() {
  std::vector<std::string> rows;
  std::string group;
  for (const Setting& setting : Parse({"--models=m"}).settings) {
    if (setting.group != group) rows.push_back(absl::StrCat("## ", setting.group));
    group = setting.group;
    const std::string& by_default = setting.default_value;
    rows.push_back(absl::StrCat("| `", setting.name, "` | ",
                                by_default.empty() ? "" : absl::StrCat("`", by_default, "`"), " | ",
                                setting.meaning, " | "));
  }
  return rows;
}

TEST_F(SettingsTest, SettingsPageIsComplete) {
  std::ifstream stream(SourceDir() / "docs/SETTINGS.md");
  std::vector<std::string> found;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("## ") || line.starts_with("| `")) found.push_back(line);
  }
  const std::vector<std::string> rows = RowsOfPage();
  ASSERT_EQ(found.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_THAT(found[i], StartsWith(rows[i]));
    if (rows[i].starts_with("|")) {
      EXPECT_GT(found[i].size(), rows[i].size() + 20) << "who changes it, when, to what?";
    }
  }
}

TEST(OptionsTest, PickedPortReplacesZero) {
  EXPECT_EQ(WithPort("127.0.0.1:0", 4711), "127.0.0.1:4711");
  EXPECT_EQ(WithPort("[::1]:0", 80), "[::1]:80");
}

}  // namespace
}  // namespace linnet::server
