#include "model/runtime/tokenizer/copied_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "model/runtime/tokenizer/tokenizer.h"
#include "tests/support/places.h"
#include "tests/support/status_matchers.h"

namespace linnet::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kShipped = SourceDir() / "model/bundles/en-de/source.spm";

// A vocabulary of ASCII, ä, ö, ü and ß, which ignores joiners and variation selectors.
std::vector<std::string> Runs(const std::string& text) {
  const auto spelling = [](absl::string_view part) {
    std::string rest;
    for (size_t at = 0; at < part.size();) {
      bool known = false;
      for (absl::string_view letter : {"ä", "ö", "ü", "ß"}) {
        if (!absl::StartsWith(part.substr(at), letter)) continue;
        at += letter.size();
        known = true;
      }
      if (known) continue;
      if (static_cast<unsigned char>(part[at]) >= 0x80) rest += part[at];
      ++at;
    }
    if (rest.empty()) return Spelling::kSpelled;
    return rest == "\u200D" || rest == "\uFE0F" ? Spelling::kNothing : Spelling::kUnspellable;
  };
  const Names names({"<ph0>", "<ph7>"});
  std::vector<std::string> runs;
  for (const TextRun& run : FindUnspellable(text, names, spelling))
    runs.push_back(text.substr(run.begin, run.end - run.begin));
  return runs;
}

TEST(CopiedRunsTest, FindsNoneInTextThatCanBeSpelled) {
  EXPECT_THAT(Runs(""), IsEmpty());
  EXPECT_THAT(Runs("Über die Straße, <b> & mehr."), ElementsAre("Über"))
      << "Ü is none of the letters";
  EXPECT_THAT(Runs("Die Straße ist schön."), IsEmpty());
}

TEST(CopiedRunsTest, CopiesWholeWordWithOneUnknownLetter) {
  EXPECT_THAT(Runs("I met Yūki in Ōsaka-shi."), ElementsAre("Yūki", "Ōsaka"));
}

TEST(CopiedRunsTest, JoinsOtherScriptsAcrossBlanks) {
  EXPECT_THAT(Runs("She said «Привет, мир» twice."), ElementsAre("«Привет", "мир»"));
  EXPECT_THAT(Runs("in 東京、日本。"), ElementsAre("東京、日本。"));
  EXPECT_THAT(Runs("مرحبا بكم في"), ElementsAre("مرحبا بكم في"));
}

TEST(CopiedRunsTest, LettersOfUnspacedScriptsAreCopiedOneByOne) {
  // As if 东 and 京 were letters of the vocabulary.
  const auto spelling = [](absl::string_view part) {
    return part == "东" || part == "京" ? Spelling::kSpelled : Spelling::kUnspellable;
  };
  const std::string text = "东龘京龘龘东";
  std::vector<std::string> runs;
  for (const TextRun& run : FindUnspellable(text, Names(), spelling))
    runs.push_back(text.substr(run.begin, run.end - run.begin));
  EXPECT_THAT(runs, ElementsAre("龘", "龘龘"));
}

TEST(CopiedRunsTest, RunsOfSymbolsIncludeJoiners) {
  EXPECT_THAT(Runs("I ♥ you"), ElementsAre("♥"));
  EXPECT_THAT(Runs("👩\u200D💻 works ❤\uFE0F!"), ElementsAre("👩\u200D💻", "❤\uFE0F"));
  EXPECT_THAT(Runs("🙂 🙂🙂"), ElementsAre("🙂 🙂🙂"));
}

TEST(CopiedRunsTest, CopiesNamesOfPlaceholders) {
  EXPECT_THAT(Runs("Write <ph0> or <PH7>, not <ph1>."), ElementsAre("<ph0>", "<PH7>"));
}

class CopyingTokenizerTest : public ::testing::Test {
 protected:
  CopyingTokenizerTest() {
    auto loaded = Tokenizer::Load(
        {.subword_file = kShipped, .placeholders = {"<ph0>", "<ph1>"}, .capitals_mark = "<ph7>"},
        {});
    EXPECT_THAT(loaded, linnet::IsOk());
    tokenizer_ = *std::move(loaded);
  }
  // The text that the model reads, and what its stand-ins stand for.
  using ReadText = std::pair<std::string, std::vector<std::string>>;
  ReadText Read(const std::string& text) { return Read(text, text); }
  ReadText Read(const std::string& text, const std::string& decoded) {
    const auto read = tokenizer_->Read(text, {.protects = true});
    EXPECT_THAT(read, linnet::IsOk());
    EXPECT_EQ(Restored(*tokenizer_, *read, text), decoded);
    const auto plain = Tokenizer::Load(kShipped, {});
    std::vector<std::string> spans;
    for (const ProtectedSpan& span : read->spans) spans.push_back(span.text);
    return {(*plain)->Decode(read->tokens), spans};
  }
  static std::string Restored(const Tokenizer& tokenizer, const TokenizedText& read,
                              const std::string& text, absl::string_view capitals = {}) {
    return tokenizer.Restore(tokenizer.Decode(read.tokens, capitals), read.spans, text, true).text;
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(CopyingTokenizerTest, ReplacesUnspellableRunsByPlaceholders) {
  EXPECT_EQ(Read("the house"), ReadText("the house", {}));
  EXPECT_EQ(Read("the 東京 house ♥."), ReadText("the <ph0> house <ph1>.", {"東京", "♥"}));
  EXPECT_EQ(Read("the ▁▂▅▁ house"), ReadText("the <ph0> house", {"▁▂▅▁"}));
}

TEST_F(CopyingTokenizerTest, CopiesSymbolsThatAreReadAsOthers) {
  const auto folding = Tokenizer::Load(SourceDir() / "tests/data/folding.spm", {});
  ASSERT_THAT(folding, linnet::IsOk());
  const std::string text = "The dog™ has 5 m² of \uff21.";
  const auto read = (*folding)->Read(text, {.protects = true});
  ASSERT_THAT(read, linnet::IsOk());
  std::vector<std::string> spans;
  for (const ProtectedSpan& span : read->spans) spans.push_back(span.text);
  EXPECT_THAT(spans, ::testing::ElementsAre("™", "²"));
  EXPECT_EQ(Restored(**folding, *read, text), "The dog™ has 5 m² of A.");
}

TEST_F(CopyingTokenizerTest, CopiesAsTheyAreInATextThatIsReadInLowerCase) {
  const auto plain = Tokenizer::Load(kShipped, {});
  const auto unmarked =
      Tokenizer::Load({.subword_file = kShipped, .placeholders = {"<ph0>", "<ph1>"}}, {});
  ASSERT_THAT(unmarked, linnet::IsOk());
  const std::string text = "THE 東京Ⱥ HOUSE ♥.";
  const auto read = (*unmarked)->Read(text, {.language_code = "en", .protects = true});
  ASSERT_THAT(read, linnet::IsOk());
  EXPECT_TRUE(read->lowered);
  EXPECT_EQ((*plain)->Decode(read->tokens), "The <ph0> house <ph1>.");
  EXPECT_EQ(Restored(**unmarked, *read, text, "en"), text);
  EXPECT_EQ((*unmarked)->Encode(text), (*plain)->Encode(text)) << "as the model reads it";
  const auto marked = tokenizer_->Read(text, {.language_code = "en", .protects = true});
  ASSERT_THAT(marked, linnet::IsOk());
  EXPECT_FALSE(marked->lowered);
  EXPECT_EQ(marked->tokens, tokenizer_->Read(text, {.protects = true})->tokens);
}

TEST_F(CopyingTokenizerTest, CopiesControlCharacters) {
  EXPECT_EQ(Read("the\x01house \x1b[0m"), ReadText("the <ph0> house <ph1>[0m", {"\x01", "\x1b"}));
  EXPECT_EQ(Read("the \x7f"), ReadText("the <ph0>", {"\x7f"}));
}

TEST_F(CopyingTokenizerTest, ReadsEveryBlankAsAPlainOne) {
  for (const std::string blank : {"\u00A0", "\u2003", "\u202F", "\u3000"}) {
    const std::string text = "the" + blank + "house";
    EXPECT_EQ(Read(text, "the house"), ReadText("the house", {})) << text;
  }
  EXPECT_EQ(Read("♥\u00A0♥"), ReadText("<ph0>", {"♥\u00A0♥"})) << "a copy is exact";
}

TEST_F(CopyingTokenizerTest, CodesStandInWherePlaceholdersRunOut) {
  EXPECT_EQ(Read("♥ the ♥ house ♥."), ReadText("<ph0> the <ph1> house KX7.", {"♥", "♥", "♥"}));
  EXPECT_EQ(Read("♥ the ♥ KX7 ♥a").first, "<ph0> the <ph1> KX7 ZB4 a")
      << "a code of the text, and none within a word";
  std::string many;
  for (int i = 0; i < 40; ++i) many += "the ♥ ";
  const auto read = tokenizer_->Read(many, {.protects = true});
  ASSERT_THAT(read, linnet::IsOk());
  EXPECT_EQ(read->spans.size(), 2 + CodeStandIns().size());
}

TEST_F(CopyingTokenizerTest, ReadsInvisibleCharactersAsAbsent) {
  for (const std::string sign : {"\u00AD", "\u200B", "\u200E", "\u2060", "\u061C", "\uFEFF"}) {
    const std::string text = "the rail" + sign + "way house" + sign;
    EXPECT_EQ(Read(text, "the railway house"), ReadText("the railway house", {})) << text;
  }
  for (const std::string hyphen : {"\u2010", "\u2011"})
    EXPECT_EQ(Read("well" + hyphen + "known", "well-known"), ReadText("well-known", {}));
  EXPECT_EQ(Read("👩\u200D💻 works").second, (std::vector<std::string>{"👩\u200D💻"}));
}

TEST_F(CopyingTokenizerTest, ReadsApostrophesOfReferencesAndEscapes) {
  for (const std::string mark : {"&#39;", "&#8217;", "&rsquo;", "\\'", "''"}) {
    EXPECT_EQ(Read("the cat" + mark + "s house", "the cat's house"),
              ReadText("the cat's house", {}))
        << mark;
    EXPECT_EQ(Read("the cats" + mark), ReadText("the cats" + mark, {})) << "it may be a quotation";
  }
}

TEST_F(CopyingTokenizerTest, MarksCapitalsAndKeepsCopiesUnchanged) {
  EXPECT_EQ(Read("THE HOUSE ♥ жЖ."), ReadText("<ph7> The house <ph0>.", {"♥ жЖ"}));
  EXPECT_EQ(Read("A ♥").first, "A <ph0>") << "a placeholder is no word in capitals";
}

TEST_F(CopyingTokenizerTest, RestoresACopyThatIsTheNameOfAnotherPlaceholder) {
  EXPECT_EQ(Read("Write <ph1> or ♥."), ReadText("Write <ph0> or <ph1>.", {"<ph1>", "♥"}));
}

TEST_F(CopyingTokenizerTest, RefusesPlaceholdersThatAreNotPieces) {
  EXPECT_THAT(Tokenizer::Load({.subword_file = kShipped, .placeholders = {"<gap>"}}, {}),
              linnet::StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("<gap>")));
}

TEST_F(CopyingTokenizerTest, GrammarLetsASearchCopyPlaceholders) {
  const TokenGrammar grammar = tokenizer_->Grammar(6020);
  const auto one = [&](const char* text) { return tokenizer_->Encode(text)->back(); };
  EXPECT_EQ(grammar.classes()[0], TokenGrammar::kControl);
  EXPECT_EQ(grammar.classes()[2], TokenGrammar::kEnd);
  EXPECT_EQ(grammar.classes()[one("<ph7>")], TokenGrammar::kFirstControl);
  EXPECT_EQ(grammar.classes()[one("<ph1>")], TokenGrammar::kText) << "a search may copy it";
  EXPECT_EQ(grammar.classes()[one("the")], TokenGrammar::kText);
  EXPECT_EQ(grammar.classes()[one("♥")], TokenGrammar::OfByte(0xA5));
  EXPECT_EQ(grammar.classes()[6019], TokenGrammar::kControl) << "it has no piece";
  EXPECT_EQ(std::ssize(grammar.byte_pieces()), 0xF4 - 0x80 + 1 - 2);
}

}  // namespace
}  // namespace linnet::model
