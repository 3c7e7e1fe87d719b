#include "model/runtime/search/token_grammar.h"

#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "tests/runtime/search/search_reference.h"
#include "tests/runtime/search/search_scenarios.h"
#include "tests/support/status_matchers.h"

namespace linnet::model {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

// A vocabulary of all bytes, a text, the end, and two control pieces.
constexpr TokenId kLetters = 256, kEnd = 257, kSteers = 258, kMark = 259;

const TokenGrammar& Bytes() {
  static const auto* const grammar = [] {
    std::vector<TokenGrammar::Class> classes;
    for (int byte = 0; byte < 256; ++byte) classes.push_back(TokenGrammar::OfByte(byte));
    for (auto other : {TokenGrammar::kText, TokenGrammar::kEnd, TokenGrammar::kControl,
                       TokenGrammar::kFirstControl})
      classes.push_back(other);
    return new TokenGrammar(classes);
  }();
  return *grammar;
}

bool Allows(TokenGrammar::State state, TokenId token, int left = 9) {
  const auto forbidden = Bytes().ForbiddenTokens(state, left);
  return !std::binary_search(forbidden.begin(), forbidden.end(), token);
}

// Checks every byte after every sequence of bytes that starts a character.
void CheckBehind(const std::vector<int>& bytes, TokenGrammar::State state) {
  for (int byte = 0; byte < 256; ++byte) {
    std::vector<int> longer = bytes;
    longer.push_back(byte);
    const int missing = MissingBytes(longer);
    ASSERT_EQ(Allows(state, byte), missing >= 0) << testing::PrintToString(longer);
    if (missing < 0) continue;
    const TokenGrammar::State next = Bytes().Next(state, byte);
    ASSERT_EQ(TokenGrammar::Tail(next), missing) << testing::PrintToString(longer);
    if (missing > 0) CheckBehind(longer, next);
  }
}

TEST(TokenGrammarTest, AllowsBytesOfUtf8Only) {
  CheckBehind({}, TokenGrammar::kStart);
  CheckBehind({}, TokenGrammar::kBoundary);
}

TEST(TokenGrammarTest, AllowsTextAndEosAfterWholeCharactersOnly) {
  for (auto state : {TokenGrammar::kStart, TokenGrammar::kBoundary}) {
    EXPECT_TRUE(Allows(state, kLetters) && Allows(state, kEnd));
    EXPECT_EQ(Bytes().Next(state, kLetters), TokenGrammar::kBoundary);
  }
  for (int lead : {0xC2, 0xE0, 0xE1, 0xED, 0xF0, 0xF1, 0xF4}) {
    const TokenGrammar::State inside = Bytes().Next(TokenGrammar::kBoundary, lead);
    for (TokenId token : {kLetters, kEnd, kSteers, kMark, TokenId{'a'}})
      EXPECT_FALSE(Allows(inside, token)) << lead << " " << token;
  }
}

TEST(TokenGrammarTest, AllowsTheMarkAtTheStartAndNoControlPieces) {
  EXPECT_FALSE(Allows(TokenGrammar::kStart, kSteers));
  EXPECT_FALSE(Allows(TokenGrammar::kBoundary, kSteers));
  EXPECT_TRUE(Allows(TokenGrammar::kStart, kMark));
  EXPECT_FALSE(Allows(TokenGrammar::kBoundary, kMark));
  EXPECT_FALSE(Allows(Bytes().Next(TokenGrammar::kStart, kMark), kMark));
}

TEST(TokenGrammarTest, ForbidsCharactersThatCannotEnd) {
  for (int left = 0; left <= 4; ++left) {
    EXPECT_EQ(Allows(TokenGrammar::kBoundary, 0xC3, left), left >= 1);
    EXPECT_EQ(Allows(TokenGrammar::kBoundary, 0xE4, left), left >= 2);
    EXPECT_EQ(Allows(TokenGrammar::kBoundary, 0xF0, left), left >= 3);
    EXPECT_TRUE(Allows(TokenGrammar::kBoundary, kLetters, left));
  }
}

TEST(TokenGrammarTest, EqualsReferenceSearch) {
  int asked_again = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    const SpelledScenario scenario = RandomSpelledScenario(seed);
    const std::vector<Hypothesis> expected = ReferenceSearch(
        scenario.options, scenario.special, scenario.prefix, scenario.model, scenario.spelling);
    for (Rows rows : {Rows::kWhole, Rows::kCut}) {
      const auto outcome = RunSearch(
          BeamSearch({scenario.options, scenario.special, scenario.prefix, {}, scenario.grammar}),
          scenario.options.temperature, scenario.model, rows);
      ASSERT_THAT(outcome, IsOk()) << "seed " << seed;
      ASSERT_TRUE(SameBits(outcome->hypotheses, expected))
          << "seed " << seed << "\n"
          << Describe(outcome->hypotheses) << "instead of\n"
          << Describe(expected);
      asked_again += outcome->rows_asked_again;
    }
  }
  EXPECT_GT(asked_again, 100) << "random models rank what is forbidden high";
}

// True if all characters are whole and control pieces occur only where they are allowed.
bool IsText(const std::vector<TokenId>& target, const TokenSpelling& spelling) {
  std::vector<int> open;
  for (size_t i = 0; i < target.size(); ++i) {
    const int spelled = spelling[target[i]];
    const bool begins = std::all_of(target.begin(), target.begin() + i, [&](TokenId before) {
      return spelling[before] == kSpellsBlank;
    });
    if (spelled == kSpellsControl || (spelled == kSpellsFirstControl && !begins)) return false;
    if (spelled < 0 && !open.empty()) return false;
    if (spelled >= 0) open.push_back(spelled);
    if (MissingBytes(open) < 0) return false;
    if (MissingBytes(open) == 0) open.clear();
  }
  return open.empty();
}

TEST(TokenGrammarTest, AllSearchesProduceText) {
  int with_bytes = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SpelledScenario scenario = RandomSpelledScenario(seed);
    Constraints constraints;
    if (seed % 3 == 1) {
      scenario.options.seed = seed;
    } else if (seed % 3 == 2) {
      scenario.options.beam_size = std::max(scenario.options.beam_size, 2);
      constraints = Constraints(std::vector<std::vector<TokenId>>{{4, 5}, {6}});
      for (TokenId token : {4, 5, 6}) scenario.spelling[token] = kSpellsText;
      scenario.grammar = GrammarOf(scenario.spelling);
    }
    const auto outcome = RunSearch(BeamSearch({scenario.options, scenario.special, scenario.prefix,
                                               constraints, scenario.grammar}),
                                   scenario.options.temperature, scenario.model);
    if (!outcome.ok()) continue;  // eos is forbidden and all n-grams have occurred
    for (const Hypothesis& hypothesis : outcome->hypotheses) {
      ASSERT_TRUE(IsText(hypothesis.tokens, scenario.spelling)) << "seed " << seed;
      for (TokenId token : hypothesis.tokens) with_bytes += scenario.spelling[token] >= 0x80;
    }
  }
  EXPECT_GT(with_bytes, 1000) << "characters are spelled";
}

TEST(TokenGrammarTest, LegalTargetKeepsItsScore) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    const SpelledScenario scenario = RandomSpelledScenario(seed);
    if (scenario.options.beam_size > 1) continue;  // a wider beam may find other targets
    const auto free = RunSearch(scenario);
    ASSERT_THAT(free, IsOk());
    if (!IsText(free->hypotheses[0].tokens, scenario.spelling)) continue;
    const auto bound = RunSearch(
        BeamSearch({scenario.options, scenario.special, scenario.prefix, {}, scenario.grammar}),
        scenario.options.temperature, scenario.model);
    ASSERT_THAT(bound, IsOk());
    ASSERT_TRUE(SameBits(free->hypotheses, bound->hypotheses)) << "seed " << seed;
  }
}

TEST(TokenGrammarTest, PhraseAllowsItsControlPieceOnce) {
  const TokenSpelling spelling = RandomSpelling(40, {});
  const TokenId placeholder = static_cast<TokenId>(
      std::find(spelling.begin() + 4, spelling.end(), kSpellsControl) - spelling.begin());
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const SearchOptions options = {.beam_size = 3, .max_target_tokens = 9};
    // A model that would repeat the phrase again and again.
    const ToyModel model = [&](const std::vector<TokenId>& target) {
      std::vector<float> row = RandomModel(seed, 40, 0, 1)(target);
      row[placeholder] += 5;
      return row;
    };
    const auto outcome =
        RunSearch(BeamSearch({options,
                              {},
                              {},
                              Constraints(std::vector<std::vector<TokenId>>{{placeholder}}),
                              GrammarOf(spelling)}),
                  1, model);
    ASSERT_THAT(outcome, IsOk());
    const auto& tokens = outcome->hypotheses[0].tokens;
    EXPECT_EQ(std::count(tokens.begin(), tokens.end(), placeholder), 1) << "seed " << seed;
  }
}

TEST(TokenGrammarTest, ForcesPrefixOfAnyTokens) {
  const TokenSpelling spelling = RandomSpelling(40, {});
  const TokenId control = static_cast<TokenId>(
      std::find(spelling.begin() + 4, spelling.end(), kSpellsControl) - spelling.begin());
  const auto outcome = RunSearch(
      BeamSearch(
          {{.beam_size = 2, .max_target_tokens = 6}, {}, {control}, {}, GrammarOf(spelling)}),
      1, RandomModel(1, 40, 0, 1));
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->hypotheses[0].tokens[0], control);
  EXPECT_THAT(
      std::vector(outcome->hypotheses[0].tokens.begin() + 1, outcome->hypotheses[0].tokens.end()),
      Not(Contains(control)));
}

}  // namespace
}  // namespace linnet::model
