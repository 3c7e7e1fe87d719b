#include "client/cli/flags/flag_names.h"

#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "tests/client/cli/cli_fixture.h"

namespace linnet::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class FlagNamesTest : public CliTest {
 protected:
  // All words of a command's help that begin with two dashes.
  std::set<std::string> ListFlags(const std::string& command) {
    EXPECT_EQ(Run({command, "--help"}), kExitOk);
    std::set<std::string> flags;
    for (absl::string_view word :
         absl::StrSplit(out_, absl::ByAnyChar(" ,\n"), absl::SkipEmpty())) {
      if (absl::StartsWith(word, "--")) flags.emplace(word);
    }
    return flags;
  }
};

TEST_F(FlagNamesTest, NamesEverySearchOptionByItsFlag) {
  const std::set<std::string> flags = ListFlags("translate");
  const auto& options = *v1::DecodingOptions::descriptor();
  for (int i = 0; i < options.field_count(); ++i) {
    const std::string field = "options." + options.field(i)->name();
    const std::string error = InFlags("INVALID_ARGUMENT: " + field + ": is 99");
    absl::string_view flag = error;
    ASSERT_TRUE(absl::ConsumePrefix(&flag, "INVALID_ARGUMENT: ")) << error;
    ASSERT_TRUE(absl::ConsumeSuffix(&flag, ": is 99")) << error;
    EXPECT_TRUE(flags.contains(std::string(flag))) << field << " became " << flag;
  }
}

TEST_F(FlagNamesTest, NamesRequestFieldsByTheirFlags) {
  const std::set<std::string> translate = ListFlags("translate"),
                              summarize = ListFlags("summarize");
  for (const char* field : {"source_language_code", "target_language_code", "model", "priority",
                            "labels", "word_scores", "alignments", "glossary"}) {
    const std::string error = InFlags(absl::StrCat(field, ": is wrong"));
    EXPECT_TRUE(translate.contains(error.substr(0, error.find(':')))) << error;
  }
  for (const char* field :
       {"language_code", "long_input", "style", "length.words", "length.sentences"}) {
    const std::string error = InFlags(absl::StrCat(field, ": is wrong"));
    EXPECT_TRUE(summarize.contains(error.substr(0, error.find(':')))) << error;
  }
}

TEST_F(FlagNamesTest, KeepsWordsThatAreNotFields) {
  for (const char* text :
       {"no model \"x\": there is en-de", "the answer of this model takes a seed",
        "contents[0]: text has 9 tokens", "TOP_K my_beam_size", ""}) {
    EXPECT_EQ(InFlags(text), text);
  }
  EXPECT_EQ(InFlags("text is too long (long_input)"), "text is too long (--long-input)");
  EXPECT_EQ(InFlags("INVALID_ARGUMENT: request.model: \"x\" is wrong"),
            "INVALID_ARGUMENT: --model: \"x\" is wrong");
  EXPECT_EQ(InFlags("settings.labels: keys"), "--label: keys");
  EXPECT_EQ(InFlags("x\n  field options.seed: is 0\n  field model"),
            "x\n  --seed: is 0\n  --model");
}

TEST_F(FlagNamesTest, ErrorsOfCommandsNameFlags) {
  server_.on_translate = [](auto&, const auto&, auto&) {
    return ServerError(grpc::StatusCode::INVALID_ARGUMENT,
                       "options.beam_size: is 99, at most 8 is taken", "BAD_OPTION",
                       "options.beam_size");
  };
  EXPECT_EQ(Run({"translate", "--from", "en", "--to", "de", "--beam", "99", "x"}), kExitCode + 3);
  EXPECT_THAT(err_, AllOf(HasSubstr("--beam: is 99, at most 8"), Not(HasSubstr("beam_size"))));
}

}  // namespace
}  // namespace linnet::client
