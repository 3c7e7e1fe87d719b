#include <algorithm>

#include "gmock/gmock.h"
#include "tests/runtime/search/rules/rule_probe.h"
#include "tests/runtime/search/search_scenarios.h"
#include "tests/support/status_matchers.h"

namespace linnet::model {
namespace {

float Scaled(float score, float factor) { return score < 0 ? score * factor : score / factor; }

std::unique_ptr<Rule> Penalty(float factor, int beam_size) {
  return NewRepetitionPenalty({.options = {.beam_size = beam_size, .repetition_penalty = factor}});
}

TEST(RepetitionPenaltyTest, ScalesLogitsInGreedySearchAndLogProbabilitiesInBeams) {
  const std::vector<float> logits = {0, 0, 4, 2, -2, 1};
  const LogitRow row = {.logits = logits, .temperature = 2, .log_normalizer = 3};
  const auto score = [&](int beam_size, TokenId token) {
    const auto rule = Penalty(1.5f, beam_size);
    return EditBy(*rule, HypothesisOf({3, 4, 4})).CandidateFor(row, token)->log_probability;
  };
  EXPECT_EQ(score(1, 3), 2 / 1.5f / 2 - 3);
  EXPECT_EQ(score(1, 4), -2 * 1.5f / 2 - 3);
  EXPECT_EQ(score(5, 3), (1.0f - 3) * 1.5f);
  EXPECT_EQ(score(5, 4), (-1.0f - 3) * 1.5f);
  EXPECT_EQ(score(5, 5), 0.5f - 3) << "not in the target";
  EXPECT_EQ(score(5, 2), (2.0f - 3) * 1.5f) << "the start token counts, here it is eos";
}

TEST(RepetitionPenaltyTest, RewardNeedsTheWholeRow) {
  EXPECT_FALSE(EditBy(*Penalty(1.5f, 4), HypothesisOf({3, 4})).Need(8).all);
  EXPECT_EQ(EditBy(*Penalty(1.5f, 4), HypothesisOf({3, 4})).Need(8).best, 8 + 3);
  EXPECT_TRUE(EditBy(*Penalty(0.5f, 4), HypothesisOf({3, 4})).Need(8).all);
}

TEST(RepetitionPenaltyTest, IsSearchedOnTheHostAndAbsentAtOne) {
  StepRules described;
  EXPECT_FALSE(Penalty(1.5f, 4)->Describe(0, described));
  EXPECT_EQ(Penalty(1, 4), nullptr);
}

TEST(RepetitionPenaltyTest, SearchEqualsReferenceAndScoring) {
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    Scenario scenario = RandomScenario(seed);
    SearchOptions& options = scenario.options;
    options.repetition_penalty = seed % 2 == 0 ? 1.4f : 0.6f;
    const ScoreRule rule = [&](const std::vector<TokenId>& tokens, const std::vector<float>& logits,
                               std::vector<float>& scores) {
      const float normalizer = LogNormalizer(logits, options.temperature);
      for (TokenId token = 0; token < std::ssize(scores); ++token) {
        if (std::count(tokens.begin(), tokens.end(), token) == 0) continue;
        scores[token] = options.beam_size == 1 ? Scaled(logits[token], options.repetition_penalty) /
                                                         options.temperature -
                                                     normalizer
                                               : Scaled(scores[token], options.repetition_penalty);
      }
    };
    const std::vector<Hypothesis> expected =
        ReferenceSearch(options, scenario.special, scenario.prefix, scenario.model, {}, rule);
    for (Rows rows : {Rows::kWhole, Rows::kCut}) {
      const auto found =
          RunSearch(options, scenario.prefix, scenario.model, scenario.special, rows);
      ASSERT_THAT(found, IsOk()) << "seed " << seed;
      ASSERT_TRUE(SameBits(found->hypotheses, expected))
          << "seed " << seed << "\n"
          << Describe(found->hypotheses) << Describe(expected);
    }
    Hypothesis best = expected.front();
    const auto scored =
        RunSearch(Scorer({.options = options, .special = scenario.special, .target = best.tokens}),
                  options.temperature, scenario.model);
    best.ended_by_limit = false;
    ASSERT_THAT(scored, IsOk());
    ASSERT_TRUE(SameBits(scored->hypotheses, {best})) << "seed " << seed;
  }
}

}  // namespace
}  // namespace linnet::model
