#include "server/text/stable_text.h"

#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include "gmock/gmock.h"
#include "model/runtime/text/segmenter.h"
#include "tests/support/places.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace linnet::server {
namespace {

using linnet::v1::WordTokenizer;
using Tokens = std::vector<model::TokenId>;

std::filesystem::path TestData(const std::string& name) {
  return SourceDir() / "tests/data" / name;
}

// Random tokens of `choice`: what is certain of each start is UTF-8 and starts the whole.
void ExpectNeverTakenBack(const model::Tokenizer& tokenizer, WordTokenizer words,
                          const Tokens& choice, int rounds, const char* capitals = "") {
  std::mt19937 random(7);
  int certain_before_the_end = 0;
  for (int round = 0; round < rounds; ++round) {
    Tokens tokens;
    const size_t length = 1 + random() % 14;
    while (tokens.size() < length) tokens.push_back(choice[random() % choice.size()]);
    const std::string whole = tokenizer.Decode(tokens, capitals);
    for (size_t count = 0; count <= tokens.size(); ++count) {
      const std::string certain =
          StableText(tokenizer, words, std::span(tokens).first(count), capitals);
      ASSERT_TRUE(whole.starts_with(certain)) << "\"" << certain << "\" of \"" << whole << "\"";
      ASSERT_EQ(model::FirstInvalidUtf8(certain), -1);
      certain_before_the_end += count < tokens.size() && !certain.empty();
    }
  }
  EXPECT_GT(certain_before_the_end, rounds) << "something must come out before the end";
}

TEST(StableTextTest, HoldsBackIncompleteCharacters) {
  auto tokenizer = model::Tokenizer::Load(TestData("tiny.spm"), {});
  ASSERT_THAT(tokenizer, IsOk());
  auto tokens = (*tokenizer)->Encode("the 日");
  ASSERT_THAT(tokens, IsOk());
  const auto certain = [&](size_t count) {
    return StableText(**tokenizer, linnet::v1::WORD_TOKENIZER_UNSPECIFIED,
                      std::span(*tokens).first(count));
  };
  EXPECT_EQ(certain(tokens->size()), "the 日");
  EXPECT_EQ(certain(tokens->size() - 1), "the") << "neither half a character nor the blank";
  EXPECT_EQ(certain(tokens->size() - 2), "the");
}

TEST(StableTextTest, SentencePieceTextIsNeverRevised) {
  auto tokenizer = model::Tokenizer::Load(TestData("tiny.spm"), {});
  ASSERT_THAT(tokenizer, IsOk());
  Tokens all;
  for (int i = 3; i < (*tokenizer)->pieces(); ++i) all.push_back(i);
  ExpectNeverTakenBack(**tokenizer, linnet::v1::WORD_TOKENIZER_UNSPECIFIED, all, 3000);
  // Half of the tokens are bytes of multi-byte characters.
  for (int byte = 0x80; byte <= 0xF4; ++byte) all.insert(all.end(), 3, 6 + byte);
  ExpectNeverTakenBack(**tokenizer, linnet::v1::WORD_TOKENIZER_UNSPECIFIED, all, 3000);
}

TEST(StableTextTest, CapitalsAfterAMarkAreNeverRevised) {
  auto tokenizer =
      model::Tokenizer::Load({.subword_file = TestData("tiny.spm"), .capitals_mark = "<ph0>"}, {});
  ASSERT_THAT(tokenizer, IsOk());
  Tokens choice((*tokenizer)->pieces() - 262);
  std::iota(choice.begin(), choice.end(), 262);
  choice.insert(choice.end(), 40, 4);  // the mark, sometimes at the start
  ExpectNeverTakenBack(**tokenizer, linnet::v1::WORD_TOKENIZER_UNSPECIFIED, choice, 3000);
}

TEST(StableTextTest, CapitalsOfALanguageAreNeverRevised) {
  const test::TemporaryFolder folder;
  {
    std::ofstream vocabulary(folder.path() / "vocab");
    vocabulary << "<s>\n<pad>\n</s>\n<unk>\n";
    // Greek eta alone keeps its accent in capitals, and loses it within a word.
    for (const char* piece :
         {"ή@@", "ή", "λιος", "ά@@", "ι@@", "ΐ", "ς", "ß@@", "ŉ", "ﬁ@@", "i@@", "a"})
      vocabulary << piece << "\n";
  }
  auto tokenizer = model::Tokenizer::Load({.subword_file = TestData("v0.2.codes"),
                                           .subword_kind = linnet::v1::SUBWORD_KIND_BPE_CODES,
                                           .vocabulary_file = folder.path() / "vocab"},
                                          {});
  ASSERT_THAT(tokenizer, IsOk());
  Tokens choice(12);
  std::iota(choice.begin(), choice.end(), 4);
  for (const char* language : {"el", "de", "tr", "und"})
    ExpectNeverTakenBack(**tokenizer, linnet::v1::WORD_TOKENIZER_UNSPECIFIED, choice, 3000,
                         language);
}

// Words and parts of words that the detokenizer has rules for.
constexpr const char* kPieces[] = {
    "word",    "wo@@", "rd",    "dogs",    "@-@",     "@@@", "-@",   "&quot;", "&apos;",
    "&apos;s", "l@@",  "&ap@@", "os;",     "d&apos;", ",",   ".",    "?",      "!@@",
    "!",       "(",    ")",     "&#91;",   "&#93;",   "$",   "€",    "„",      "“",
    "'",       "\"",   "%",     ":",       "...",     "¿",   "日本", "語",     "한국",
    "5",       "3@@",  "&amp;", "&lt;b@@", "s@@",     "`",   "“@@",  "é"};

class MosesStableTextTest : public testing::TestWithParam<const char*> {};

TEST_P(MosesStableTextTest, IsNeverRevised) {
  const test::TemporaryFolder folder;
  {
    std::ofstream vocabulary(folder.path() / "vocab");
    vocabulary << "<s>\n<pad>\n</s>\n<unk>\n";
    for (const char* piece : kPieces) vocabulary << piece << "\n";
  }
  for (WordTokenizer words :
       {linnet::v1::WORD_TOKENIZER_UNSPECIFIED, linnet::v1::WORD_TOKENIZER_MOSES}) {
    auto tokenizer = model::Tokenizer::Load({.subword_file = TestData("v0.2.codes"),
                                             .subword_kind = linnet::v1::SUBWORD_KIND_BPE_CODES,
                                             .vocabulary_file = folder.path() / "vocab",
                                             .word_tokenizer = words,
                                             .language_code = GetParam()},
                                            {});
    ASSERT_THAT(tokenizer, IsOk());
    Tokens choice(std::size(kPieces) + 1);
    std::iota(choice.begin(), choice.end(), 3);
    ExpectNeverTakenBack(**tokenizer, words, choice, 20000);
  }
}

INSTANTIATE_TEST_SUITE_P(Languages, MosesStableTextTest,
                         testing::Values("en", "de", "fr", "it", "zh", "ko"));

}  // namespace
}  // namespace linnet::server
