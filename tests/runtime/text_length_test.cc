#include "model/runtime/tokenizer/text_length.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "model/runtime/search/beam_search.h"
#include "tests/runtime/words_golden.h"
#include "tests/support/status_matchers.h"

namespace linnet::model {
namespace {

using State = TargetLength::State;

Tokenizer ByteLevel() {
  return **Tokenizer::Load({.subword_file = TestData("byte_level/merges.txt"),
                            .subword_kind = linnet::v1::SUBWORD_KIND_BYTE_LEVEL_BPE,
                            .vocabulary_file = TestData("byte_level/pieces.vocab")},
                           {});
}

Tokenizer Pieces() { return **Tokenizer::Load(TestData("tiny.spm"), {}); }

// The best target of a search over random logits in which the end token is likely; of `likely`
// tokens each is as likely as that.
Hypothesis BestTarget(const Tokenizer& tokenizer, std::shared_ptr<const TargetLength> length,
                      unsigned seed, int max_tokens, const std::vector<TokenId>& likely = {}) {
  SearchOptions options;
  options.beam_size = 3;
  options.max_target_tokens = max_tokens;
  BeamSearch search({options, {}, {}, {}, nullptr, {}, std::move(length)});
  std::mt19937 random(seed);
  std::normal_distribution<float> draw(0, 2);
  const int vocabulary = tokenizer.pieces();
  while (!search.finished()) {
    std::vector<float> logits;
    std::vector<float> normalizers;
    for (int i = 0; i < search.live(); ++i) {
      std::vector<float> row(vocabulary);
      for (float& logit : row) logit = draw(random);
      row[2] = 6;
      for (TokenId token : likely) row[token] += 4;
      double sum = 0;
      for (float logit : row) sum += std::exp(logit);
      normalizers.push_back(static_cast<float>(std::log(sum)));
      logits.insert(logits.end(), row.begin(), row.end());
    }
    EXPECT_THAT(search.Advance(logits, normalizers), IsOk());
  }
  return search.Results().front();
}

TEST(TextLengthTest, CountsWordsBetweenWhiteSpace) {
  EXPECT_EQ(WordsIn(""), 0);
  EXPECT_EQ(WordsIn(" \n"), 0);
  EXPECT_EQ(WordsIn("A dog's bowl."), 3);
  EXPECT_EQ(WordsIn("  two\u3000words "), 2);
}

TEST(TextLengthTest, CountsSentencesOnlyBehindTheEndOfOne) {
  EXPECT_EQ(CompleteSentencesIn("", "en"), 0);
  EXPECT_EQ(CompleteSentencesIn("A dog runs.", "en"), 1);
  EXPECT_EQ(CompleteSentencesIn("A dog runs. It barks!", "en"), 2);
  EXPECT_EQ(CompleteSentencesIn("A dog runs. It", "en"), 0);
  EXPECT_EQ(CompleteSentencesIn("He called Dr.", "en"), 0);
  EXPECT_EQ(CompleteSentencesIn("Er sagte \"Ja.\"", "de"), 1);
  EXPECT_EQ(CompleteSentencesIn("Der Mann ist 30.", "de-AT"), 1);
  EXPECT_EQ(CompleteSentencesIn("Am 3.", "en"), 1);
}

TEST(TextLengthTest, TokensBeginWordsAfterWhiteSpace) {
  for (const Tokenizer& tokenizer : {ByteLevel(), Pieces()}) {
    ASSERT_TRUE(tokenizer.separates_words());
    const auto marks = tokenizer.WordMarks();
    EXPECT_GT(marks->word_starts.size(), 5);
    const std::vector<TokenId> word = *tokenizer.Encode("a");
    for (TokenId token = 4; token < tokenizer.pieces(); ++token) {
      std::vector<TokenId> both = word;
      both.push_back(token);
      const bool two = WordsIn(tokenizer.Decode(both)) > 1;
      EXPECT_TRUE(!two || marks->begins_word(token)) << token;
    }
  }
}

TEST(TextLengthTest, OtherTokenizersDoNotSeparateWords) {
  const auto tokenizer = Tokenizer::Load({.subword_file = TestData("v0.2.codes"),
                                          .subword_kind = linnet::v1::SUBWORD_KIND_BPE_CODES,
                                          .vocabulary_file = TestData("../fuzz/pieces.txt")},
                                         {});
  ASSERT_THAT(tokenizer, IsOk());
  EXPECT_FALSE((*tokenizer)->separates_words());
}

TEST(TextLengthTest, WordsAreShortEnoughAndFull) {
  const Tokenizer tokenizer = ByteLevel();
  const auto length = LengthInWords(tokenizer, 2, 3);
  const auto state = [&](absl::string_view text) { return length->After(*tokenizer.Encode(text)); };
  EXPECT_EQ(state(""), State::kShort);
  EXPECT_EQ(state("where"), State::kShort);
  EXPECT_EQ(state("where it"), State::kEnough);
  EXPECT_EQ(state("where it left"), State::kFull);
  EXPECT_EQ(state("where it left."), State::kFull);
}

TEST(TextLengthTest, SentencesAreFullOnlyBehindAnEnd) {
  const Tokenizer tokenizer = ByteLevel();
  const auto length = LengthInSentences(tokenizer, 2, "en");
  const auto state = [&](absl::string_view text) { return length->After(*tokenizer.Encode(text)); };
  EXPECT_EQ(state("A dog runs."), State::kShort);
  EXPECT_EQ(state("A dog runs. It barks"), State::kShort);
  EXPECT_EQ(state("A dog runs. It barks."), State::kFull);
  EXPECT_EQ(state("A dog runs. It costs 3."), State::kFull);
  EXPECT_EQ(state("A dog runs. It costs 3.5"), State::kShort);
}

TEST(TextLengthTest, RandomSearchesKeepToTheWords) {
  for (const Tokenizer& tokenizer : {ByteLevel(), Pieces()}) {
    for (unsigned seed = 0; seed < 12; ++seed) {
      const int max = 1 + static_cast<int>(seed) % 5, min = (max + 1) / 2;
      const Hypothesis found = BestTarget(tokenizer, LengthInWords(tokenizer, min, max), seed, 200,
                                          tokenizer.WordMarks()->word_starts);
      ASSERT_FALSE(found.ended_by_limit);
      const std::string text = tokenizer.Decode(found.tokens);
      EXPECT_GE(WordsIn(text), min) << text;
      EXPECT_LE(WordsIn(text), max) << text;
    }
  }
}

TEST(TextLengthTest, RandomSearchesKeepToTheSentences) {
  const Tokenizer tokenizer = ByteLevel();
  std::vector<TokenId> likely;
  for (absl::string_view text : {".", " dog", " The", "!"})
    likely.push_back(tokenizer.Encode(text)->front());
  for (unsigned seed = 0; seed < 12; ++seed) {
    const int sentences = 1 + static_cast<int>(seed) % 3;
    const Hypothesis found =
        BestTarget(tokenizer, LengthInSentences(tokenizer, sentences, "en"), seed, 200, likely);
    if (found.ended_by_limit) continue;
    const std::string text = tokenizer.Decode(found.tokens);
    EXPECT_GE(CompleteSentencesIn(text, "en"), sentences) << text;
  }
}

TEST(TextLengthTest, LimitOnTokensEndsAShortTarget) {
  const Tokenizer tokenizer = Pieces();
  const Hypothesis found = BestTarget(tokenizer, LengthInWords(tokenizer, 50, 60), 1, 10);
  EXPECT_TRUE(found.ended_by_limit);
  EXPECT_EQ(found.tokens.size(), 11);
}

// The tokens of a text and the state of the rule behind it.
State StateAfter(const Tokenizer& tokenizer, const TargetLength& length, absl::string_view text) {
  const auto tokens = tokenizer.Encode(text);
  EXPECT_THAT(tokens, IsOk());
  return length.After(*tokens);
}

TEST(TextLengthTest, TitleIsFullBehindItsFirstSentence) {
  const Tokenizer tokenizer = ByteLevel();
  const auto one = LengthUpToSentences(tokenizer, 1, "en");
  for (const char* text : {"", "A dog", "Vitamin C", "We need vitamin C.", "A dog no", "A dog (so)",
                           "A dog, 2", "Fast \"dogs\""})
    EXPECT_EQ(StateAfter(tokenizer, *one, text), State::kEnough) << text;
  for (const char* text : {"A dog runs.", "Is it so?", "He said \"no.\"", "A dog. A cat."})
    EXPECT_EQ(StateAfter(tokenizer, *one, text), State::kFull) << text;
}

TEST(TextLengthTest, NoSummaryEndsBehindAnAbbreviation) {
  const Tokenizer tokenizer = ByteLevel();
  for (const int max : {0, 1, 2}) {
    const auto length = LengthUpToSentences(tokenizer, max, "en");
    for (const char* text :
         {"because Mr.", "with Dr.", "A dog runs. It met Mrs.", "Ask Mr", "It is Dr"})
      EXPECT_EQ(StateAfter(tokenizer, *length, text), State::kShort) << text << " of " << max;
  }
  const auto german = LengthUpToSentences(tokenizer, 1, "de");
  EXPECT_EQ(StateAfter(tokenizer, *german, "mit Prof."), State::kShort);
  EXPECT_EQ(StateAfter(tokenizer, *german, "Der Hund rennt."), State::kFull);
}

TEST(TextLengthTest, ParagraphMayHaveAnyNumberOfSentences) {
  const Tokenizer tokenizer = ByteLevel();
  const auto any = LengthUpToSentences(tokenizer, 0, "en");
  EXPECT_EQ(StateAfter(tokenizer, *any, "A dog runs. A cat sleeps."), State::kEnough);
  EXPECT_NE(any->name(), LengthUpToSentences(tokenizer, 1, "en")->name()) << "a key of the cache";
}

TEST(TextLengthTest, SearchWritesNoSecondSentence) {
  const Tokenizer tokenizer = ByteLevel();
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Hypothesis found =
        BestTarget(tokenizer, LengthUpToSentences(tokenizer, 1, "en"), seed, 24);
    if (found.ended_by_limit) continue;
    const std::string text = tokenizer.Decode(found.tokens);
    EXPECT_LE(CompleteSentencesIn(text, "en"), 1) << text;
  }
}

}  // namespace
}  // namespace linnet::model
