#include "model/runtime/search/spelled_start.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "model/runtime/search/search.h"
#include "tests/runtime/search/rules/rule_probe.h"

namespace linnet::model {
namespace {

using ::testing::ElementsAre;

constexpr TokenId kEos = 2;
const std::vector<std::string> kPieces = {"<s>", "<pad>", "</s>", "<unk>", "a",
                                          "b",   "ab",    "ba",   "abc",   "c"};

// "ab" in the tokens of kPieces.
std::shared_ptr<const SpelledStart> SpellAb() {
  SpelledStart start;
  start.text = "ab";
  start.places = {{.tokens = {4, 6, 8}, .spelled = {1, 2, 2}},
                  {.tokens = {5, 7}, .spelled = {2, 2}}};
  return std::make_shared<const SpelledStart>(start);
}

std::string TextOf(std::span<const TokenId> tokens) {
  std::string text;
  for (TokenId token : tokens) text += token == kEos ? "" : kPieces[token];
  return text;
}

TEST(SpelledStartTest, AllowsWhatSpellsTheRest) {
  const auto rule = NewSpelledStart({.prefix = {9}, .start = SpellAb()});
  EXPECT_FALSE(EditBy(*rule, HypothesisOf({})).allowed().has_value()) << "the prefix is forced";
  const std::vector<TokenId> prefix = {9}, half = {9, 4}, all = {9, 6}, more = {9, 4, 7};
  rule->Follow(std::vector<Continuation>{{.parent = 0, .token = 9, .target = prefix}});
  EXPECT_THAT(*EditBy(*rule, HypothesisOf(prefix)).allowed(), ElementsAre(4, 6, 8));
  rule->Follow(std::vector<Continuation>{{.parent = 0, .token = 6, .target = all},
                                         {.parent = 0, .token = 4, .target = half}});
  LiveHypothesis second = HypothesisOf(half);
  second.number = 1;
  EXPECT_FALSE(EditBy(*rule, HypothesisOf(all)).allowed().has_value());
  EXPECT_THAT(*EditBy(*rule, second).allowed(), ElementsAre(5, 7));
  rule->Follow(std::vector<Continuation>{{.parent = 1, .token = 7, .target = more}});
  EXPECT_FALSE(EditBy(*rule, HypothesisOf(more)).allowed().has_value());
  StepRules described;
  EXPECT_FALSE(rule->Describe(0, described)) << "searched on the host";
}

TEST(SpelledStartTest, IsAbsentWithoutAStart) { EXPECT_EQ(NewSpelledStart({}), nullptr); }

// The best of all targets of at most three tokens that begin with "cab", by trying each of them.
TEST(SpelledStartTest, FindsTheBestTargetThatBeginsWithTheText) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-3, 3);
  for (int round = 0; round < 50; ++round) {
    const auto vocabulary = static_cast<int>(kPieces.size());
    std::vector<float> logits(vocabulary);
    for (float& logit : logits) logit = uniform(random);
    float sum = 0;
    for (float logit : logits) sum += std::exp(logit);
    const float normalizer = std::log(sum);
    // Every row has the same logits.
    float best = -1e9f;
    std::vector<TokenId> best_tokens;
    const int limit = 4;
    std::vector<std::vector<TokenId>> open = {{9}};
    for (size_t i = 0; i < open.size(); ++i) {
      const std::vector<TokenId> tokens = open[i];
      if (absl::StartsWith(TextOf(tokens), "cab")) {
        float score = logits[kEos] - normalizer;
        for (TokenId token : tokens) score += logits[token] - normalizer;
        if (score > best) best = score, best_tokens = tokens;
      }
      if (std::ssize(tokens) == limit) continue;
      for (TokenId token = 4; token < vocabulary; ++token) {
        open.push_back(tokens);
        open.back().push_back(token);
      }
    }
    best_tokens.push_back(kEos);
    const auto search = NewSearch({.options = {.beam_size = 32,
                                               .length_penalty = 0,
                                               .max_target_tokens = limit,
                                               .normalize_scores = false},
                                   .special = {.bos = 0, .pad = 1, .eos = kEos, .unk = 3},
                                   .prefix = {9},
                                   .start = SpellAb()});
    while (!search->finished()) {
      std::vector<float> rows;
      for (int i = 0; i < search->live(); ++i)
        rows.insert(rows.end(), logits.begin(), logits.end());
      // Only text: a model without a grammar may write the special tokens.
      for (int i = 0; i < search->live(); ++i) {
        for (TokenId token : {0, 1, 3}) rows[i * vocabulary + token] = -1e30f;
      }
      const std::vector<float> normalizers(search->live(), normalizer);
      ASSERT_TRUE(search->Advance(rows, normalizers).ok());
    }
    const Hypothesis found = search->Results().front();
    EXPECT_EQ(found.tokens, best_tokens) << "round " << round;
    EXPECT_NEAR(found.score, best, 1e-4);
  }
}

}  // namespace
}  // namespace linnet::model
