#include "model/runtime/tokenizer/bpe.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "model/runtime/text/characters.h"
#include "tests/runtime/words_golden.h"
#include "tests/support/status_matchers.h"

namespace linnet::model {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

BpeCodes Codes(const std::string& contents) {
  absl::StatusOr<BpeCodes> codes = BpeCodes::Parse(contents);
  EXPECT_THAT(codes.status(), IsOk());
  return codes.ok() ? *std::move(codes) : BpeCodes();
}

std::vector<std::string> Split(const BpeCodes& codes, const std::string& word) {
  std::vector<absl::string_view> pieces;
  codes.Split(word, pieces);
  return {pieces.begin(), pieces.end()};
}

TEST(BpeTest, SplitsLikeSubwordNmtForBothVersions) {
  std::map<std::string, BpeCodes> codes;
  const nlohmann::json& cases = GoldenWords()["byte_pairs"];
  ASSERT_GT(cases.size(), 150);
  for (const nlohmann::json& each : cases) {
    const auto name = each["codes"].get<std::string>();
    if (!codes.contains(name)) codes.emplace(name, Codes(TestDataContents(name)));
    const auto words = each["words"].get<std::string>();
    std::string pieces;
    for (absl::string_view word : PartsOf(words, ' ')) {
      if (word.empty()) continue;
      const std::vector<std::string> split = Split(codes.at(name), std::string(word));
      for (size_t i = 0; i < split.size(); ++i) {
        pieces += split[i] + (i + 1 < split.size() ? "@@ " : " ");
      }
    }
    if (!pieces.empty()) pieces.pop_back();
    EXPECT_EQ(pieces, each["pieces"].get<std::string>()) << each;
  }
}

TEST(BpeTest, AppliesOneMergeToTheWholeWordBeforeTheNext) {
  // After the first "ab", "ab a" has the lower rank, but both pairs "a b" are merged before it.
  const BpeCodes codes = Codes("#version: 0.2\nab a\na b\n");
  EXPECT_THAT(Split(codes, "ababx"), ElementsAre("ab", "ab", "x"));
  EXPECT_THAT(Split(codes, "abax"), ElementsAre("aba", "x"));
}

TEST(BpeTest, MergesOverlappingPairsFromTheLeft) {
  const BpeCodes codes = Codes("#version: 0.2\na a\n");
  EXPECT_THAT(Split(codes, "aaaaax"), ElementsAre("aa", "aa", "a", "x"));
}

TEST(BpeTest, AppendsEndOfWordToTheLastCharacterSinceVersion2) {
  EXPECT_THAT(Split(Codes("#version: 0.2\na b</w>\n"), "abab"), ElementsAre("a", "b", "ab"));
  EXPECT_THAT(Split(Codes("a b\nab </w>\nb </w>\n"), "abab"), ElementsAre("ab", "ab"));
  EXPECT_THAT(Split(Codes("#version: 0.1\nb </w>\na b\n"), "abab"), ElementsAre("ab", "a", "b"));
}

TEST(BpeTest, IgnoresCountsOfFastBpe) {
  EXPECT_THAT(Split(Codes("a b</w> 12\nc d 3\n"), "cdab"), ElementsAre("cd", "ab"));
}

TEST(BpeTest, AcceptsWindowsLineEnds) {
  EXPECT_THAT(Split(Codes("#version: 0.2\r\na b</w>\r\n"), "ab"), ElementsAre("ab"));
}

TEST(BpeTest, PiecesJoinToTheWord) {
  const BpeCodes codes = Codes(TestDataContents("v0.2.codes"));
  const std::string invalid = "a\xff\xfe" + std::string("b");
  for (const std::string& word :
       {std::string("e"), std::string("\u00e9\u00e9"), std::string("日本"), std::string("the</w>"),
        invalid, std::string("\xc3")}) {
    std::string joined;
    for (const std::string& piece : Split(codes, word)) joined += piece;
    EXPECT_EQ(joined, word);
  }
  EXPECT_TRUE(Split(codes, "").empty());
}

// A quadratic algorithm would take minutes at this size.
TEST(BpeTest, SplitsWordOfAMegabyte) {
  std::string codes = "#version: 0.2\n";
  for (std::string run = "a"; run.size() < 1024; run += run)
    absl::StrAppend(&codes, run, " ", run, "\n");
  const std::vector<std::string> pieces = Split(Codes(codes), std::string(1 << 20, 'a'));
  EXPECT_EQ(pieces.size(), 1023 + 10 + 1);  // the last character is a different symbol
}

TEST(BpeTest, RefusesInvalidMerges) {
  const auto wrong = [](const std::string& contents) { return BpeCodes::Parse(contents).status(); };
  const auto says = [](const auto& what) {
    return StatusIs(absl::StatusCode::kFailedPrecondition, what);
  };
  EXPECT_THAT(wrong("#version: 0.2\na b\nabc\n"), says(HasSubstr("line 3")));
  EXPECT_THAT(wrong("#version: 0.2\na b 5\n"), says(HasSubstr("line 2")));
  EXPECT_THAT(wrong("a  b\n"), says(HasSubstr("line 1")));
  EXPECT_THAT(wrong("#version: 0.2\na b\n\nc d\n"), says(HasSubstr("line 3")));
  EXPECT_THAT(wrong("#version: 0.3\na b\n"), says(AllOf(HasSubstr("0.3"), HasSubstr("0.2"))));
  EXPECT_THAT(wrong("#version: 0.2\n"), says(HasSubstr("no merge operations")));
  EXPECT_THAT(wrong("#version: 0.2\na \xff\n"), says(HasSubstr("line 2 is not UTF-8")));
}

}  // namespace
}  // namespace linnet::model
