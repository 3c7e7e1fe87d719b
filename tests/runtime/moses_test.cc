#include "model/runtime/tokenizer/moses.h"

#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "model/runtime/text/segmenter.h"
#include "tests/runtime/words_golden.h"

namespace linnet::model {
namespace {

TEST(MosesTest, TokenizesLikeSacremosesInEveryLanguage) {
  const nlohmann::json& cases = GoldenWords()["moses"];
  ASSERT_GT(cases.size(), 600);
  for (const nlohmann::json& each : cases) {
    EXPECT_EQ(
        MosesWords(each["language"].get<std::string>()).Tokenize(each["text"].get<std::string>()),
        each["words"].get<std::string>())
        << each;
  }
}

TEST(MosesTest, DetokenizesLikeSacremosesInEveryLanguage) {
  for (const nlohmann::json& each : GoldenWords()["moses"]) {
    const MosesWords moses(each["language"].get<std::string>());
    EXPECT_EQ(moses.Detokenize(each["words"].get<std::string>()),
              each["from_words"].get<std::string>())
        << each;
    // Models generate words that no tokenizer produces.
    EXPECT_EQ(moses.Detokenize(each["text"].get<std::string>()),
              each["from_text"].get<std::string>())
        << each;
  }
}

TEST(MosesTest, UsesRulesOfTheLanguageForRegions) {
  const std::string text = "Am 3. Oktober ist's z.B. Nr. 5.";
  EXPECT_EQ(MosesWords("de-AT").Tokenize(text), MosesWords("de").Tokenize(text));
  EXPECT_EQ(MosesWords("EN").Tokenize(text), MosesWords("en").Tokenize(text));
  EXPECT_NE(MosesWords("en").Tokenize(text), MosesWords("de").Tokenize(text));
}

TEST(MosesTest, UsesEnglishPrefixesForOtherLanguages) {
  EXPECT_EQ(MosesWords("sw").Tokenize("Mr. Banda na Bw. Juma."), "Mr. Banda na Bw . Juma .");
}

TEST(MosesTest, ProseSurvivesRoundTrip) {
  for (const std::string text :
       {"The children's books aren't on Mr. Miller's table.",
        "Well-known methods (see [1] & [2]) cost $1,000.50, don't they?",
        "It takes 3-4 days; \"really\"!", "He asked for 100% of it, not 50%."}) {
    const MosesWords moses("en");
    EXPECT_EQ(moses.Detokenize(moses.Tokenize(text)), text);
  }
}

TEST(MosesTest, TreatsMarksOfSacremosesAsWords) {
  const MosesWords moses("en");
  for (const std::string text : {"DOTMULTI", "a DOTDOTMULTI b", "THISISPROTECTED000"}) {
    EXPECT_EQ(moses.Tokenize(text), text);
    EXPECT_EQ(moses.Detokenize(text), text);
  }
}

TEST(MosesTest, UnescapesEntitiesOnce) {
  const MosesWords moses("en");
  EXPECT_EQ(moses.Detokenize("&amp;lt;"), "&lt;");
  EXPECT_EQ(moses.Detokenize("&amp;amp;amp;"), "&amp;amp;");
  EXPECT_EQ(moses.Tokenize("&lt;"), "&amp; lt ;");
}

TEST(MosesTest, ReplacesInvalidUtf8) {
  const MosesWords moses("en");
  EXPECT_EQ(moses.Tokenize("a\xff"
                           "b"),
            "a \uFFFD b");
  EXPECT_EQ(moses.Detokenize("a \xc3"), "a \uFFFD");
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 40, ' ');
    for (char& byte : bytes) byte = static_cast<char>(random());
    EXPECT_EQ(FirstInvalidUtf8(moses.Tokenize(bytes)), -1);
    EXPECT_EQ(FirstInvalidUtf8(moses.Detokenize(bytes)), -1);
  }
}

TEST(MosesTest, SeparatesWordsByOneBlank) {
  std::mt19937 random(4);
  const std::vector<std::string> parts = {" ", "\t", "'", ".", "..", ",", "a", "1", "-", "\u00a0"};
  for (const char* language : {"en", "fr", "de"}) {
    const MosesWords moses(language);
    for (int round = 0; round < 2000; ++round) {
      std::string text;
      for (int i = random() % 12; i > 0; --i) text += parts[random() % parts.size()];
      const std::string words = moses.Tokenize(text);
      EXPECT_EQ(words.find("  "), std::string::npos) << text;
      EXPECT_FALSE(words.starts_with(' ') || words.ends_with(' ')) << text;
    }
  }
}

// A quadratic algorithm would take minutes at these sizes.
TEST(MosesTest, TakesLinearTimeOnLongTexts) {
  const MosesWords moses("en");
  for (const std::string part : {".", "'", "a'", "-", "a-", ",", "1,", "&", "a.", "@-@ ", "\" "}) {
    std::string text;
    while (text.size() < 300'000) text += part;
    EXPECT_GE(moses.Tokenize(text).size(), text.size() - 1) << part;
    EXPECT_FALSE(moses.Detokenize(text).empty()) << part;
  }
}

}  // namespace
}  // namespace linnet::model
