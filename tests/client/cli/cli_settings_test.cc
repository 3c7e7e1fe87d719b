// Tests the sources of settings and their precedence.
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/client/cli/cli_fixture.h"
#include "tests/support/temporary_folder.h"

namespace linnet::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CliSettingsTest : public CliTest {
 protected:
  void Config(const std::string& content) {
    variables_["LINNET_CONFIG"] = folder_.path() / "config";
    std::ofstream(variables_["LINNET_CONFIG"]) << content;
  }
  // The languages of the last request.
  std::string Languages() const {
    const v1::TranslateRequest request = server_.translate_requests().back();
    return request.source_language_code() + " to " + request.target_language_code();
  }

  const test::TemporaryFolder folder_;
};

TEST_F(CliSettingsTest, FlagsOverrideEnvironmentOverridesFile) {
  Config("# mine\nto = fr\n\n from=en \nto = nl\n");
  EXPECT_EQ(Run({"translate", "x"}), kExitOk) << err_;
  EXPECT_EQ(Languages(), "en to nl") << "the last value wins";
  variables_["LINNET_TO"] = "es";
  EXPECT_EQ(Run({"translate", "x"}), kExitOk);
  EXPECT_EQ(Languages(), "en to es");
  EXPECT_EQ(Run({"translate", "--to", "de", "x"}), kExitOk);
  EXPECT_EQ(Languages(), "en to de");
  variables_["LINNET_TO"] = "";
  EXPECT_EQ(Run({"translate", "x"}), kExitOk);
  EXPECT_EQ(Languages(), "en to nl") << "an empty value means unset";
}

TEST_F(CliSettingsTest, ModelOfScoreReplacesLanguages) {
  variables_["LINNET_TO"] = "de";
  Config("from = fr\n");
  EXPECT_EQ(Run({"score", "--model", "en-summary", "A dog.", "Dog"}), kExitOk) << err_;
  EXPECT_EQ(server_.score_requests().back().target_language_code(), "");
  EXPECT_EQ(server_.score_requests().back().source_language_code(), "");
  EXPECT_EQ(Run({"score", "--model=many", "--to", "nl", "A dog.", "Een hond."}), kExitOk) << err_;
  EXPECT_EQ(server_.score_requests().back().target_language_code(), "nl");
  EXPECT_EQ(server_.score_requests().back().source_language_code(), "fr");
  EXPECT_EQ(Run({"score", "--", "A dog.", "--model"}), kExitOk) << err_;
  EXPECT_EQ(server_.score_requests().back().target_language_code(), "de") << "this is a text";
}

TEST_F(CliSettingsTest, SkipsByteOrderMarkInFile) {
  Config("\uFEFFto = de\r\nfrom = en\r\n");
  EXPECT_EQ(Run({"translate", "x"}), kExitOk) << err_;
  EXPECT_EQ(Languages(), "en to de");
}

TEST_F(CliSettingsTest, ReadsServerFromFile) {
  Config("server = " + server_.address() + "\nto = de\n");
  server_name_ = "";
  EXPECT_EQ(Run({"health"}), kExitOk) << err_ << "settings of other commands are ignored";
  EXPECT_EQ(Run({"health", "--help"}), kExitOk);
  EXPECT_THAT(out_, HasSubstr(server_.address()));
}

TEST_F(CliSettingsTest, SendsTokenNamedInEnvironment) {
  variables_["LINNET_TOKEN_FILE"] = folder_.path() / "token";
  std::ofstream(variables_["LINNET_TOKEN_FILE"]) << "my-token\n";
  EXPECT_EQ(Run({"translate", "--from", "en", "--to", "de", "x"}), kExitOk) << err_;
  EXPECT_THAT(server_.authorizations(), ElementsAre("Bearer my-token"));
  EXPECT_EQ(Run({"health", "--server", "translate.example:1"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("in plain text"));
}

TEST_F(CliSettingsTest, TlsCanBeSwitchedOffAgainstTheFile) {
  std::ofstream(folder_.path() / "ca.pem") << "not read where nothing is encrypted\n";
  Config(absl::StrCat("tls-ca = ", (folder_.path() / "ca.pem").string(),
                      "\ntls-server-name = translate.example\n"));
  EXPECT_NE(Run({"health", "--timeout", "1s"}), kExitOk) << "the server speaks plain text";
  variables_["LINNET_TLS"] = "false";
  EXPECT_EQ(Run({"health"}), kExitOk) << err_;
  EXPECT_NE(Run({"health", "--tls", "--timeout", "1s"}), kExitOk) << "a flag overrides it";
  variables_.erase("LINNET_TLS");
  EXPECT_EQ(Run({"health", "--tls=false"}), kExitOk) << err_;
  const std::vector<std::string> text = {"translate", "--from", "en", "--to",       "de",
                                         "--timeout", "1s",     "--", "--tls=false"};
  EXPECT_NE(Run(text), kExitOk) << "a text switches nothing off";
}

TEST_F(CliSettingsTest, NamesTheLineOfAnUnknownSetting) {
  Config("server = 127.0.0.1:1\n\ntarget = de\n");
  EXPECT_EQ(Run({"health"}), kExitUsage);
  EXPECT_THAT(err_, AllOf(HasSubstr("config:3: no setting \"target\""), HasSubstr("tls-ca")));
  Config("to de\n");
  EXPECT_EQ(Run({"health"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("config:1: \"to de\" is not NAME = VALUE"));
  Config("tls = perhaps\n");
  EXPECT_EQ(Run({"health"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("\"perhaps\" is no choice of true and false"));
  Config("timeout = soon\n");
  EXPECT_EQ(Run({"health"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("\"soon\" is no duration"));
  Config("tls = no\n");
  EXPECT_EQ(Run({"health"}), kExitOk) << err_;
}

TEST_F(CliSettingsTest, FindsFileInXdgConfigHome) {
  EXPECT_THAT(SettingsFile({}), IsEmpty());
  EXPECT_EQ(SettingsFile({{"HOME", "/home/me"}}), "/home/me/.config/linnet/config");
  EXPECT_EQ(SettingsFile({{"HOME", "/home/me"}, {"XDG_CONFIG_HOME", "/cfg"}}),
            "/cfg/linnet/config");
  EXPECT_EQ(SettingsFile({{"HOME", "/home/me"}, {"LINNET_CONFIG", "/my"}}), "/my");
  variables_["HOME"] = folder_.path();
  EXPECT_EQ(Run({"health"}), kExitOk) << "the default file may be absent";
  std::ofstream(folder_.path() / ".config") << "a file";
  EXPECT_EQ(Run({"health"}), kExitOk) << "nor can it be there below a file";
  variables_["LINNET_CONFIG"] = folder_.path() / "none";
  EXPECT_EQ(Run({"health"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("No such file"));
  variables_["LINNET_CONFIG"] = folder_.path();
  EXPECT_EQ(Run({"health"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("Is a directory"));
}

}  // namespace
}  // namespace linnet::client
