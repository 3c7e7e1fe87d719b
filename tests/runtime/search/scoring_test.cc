// Scoring of given targets: the score that a search gives, without the search.
#include <cmath>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "model/runtime/engine.h"
#include "tests/runtime/search/search_scenarios.h"
#include "tests/support/status_matchers.h"

namespace linnet::model {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

absl::StatusOr<Outcome> Score(const Scenario& scenario, const std::vector<TokenId>& target,
                              Rows rows = Rows::kWhole) {
  return RunSearch(
      Scorer({.options = scenario.options, .special = scenario.special, .target = target}),
      scenario.options.temperature, scenario.model, rows);
}

TEST(ScoringTest, ScoresEveryResultLikeTheSearch) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    const Scenario scenario = RandomScenario(seed);
    const auto found = RunSearch(scenario);
    ASSERT_THAT(found, IsOk());
    for (Hypothesis hypothesis : found->hypotheses) {
      hypothesis.ended_by_limit = false;  // the target contains its eos
      for (Rows rows : {Rows::kWhole, Rows::kCut}) {
        const auto scored = Score(scenario, hypothesis.tokens, rows);
        ASSERT_THAT(scored, IsOk()) << "seed " << seed;
        ASSERT_TRUE(SameBits(scored->hypotheses, {hypothesis})) << "seed " << seed;
      }
    }
  }
}

TEST(ScoringTest, NeedsOneRowAndOneStepPerToken) {
  Scenario scenario = RandomScenario(1);
  scenario.options.beam_size = 5;
  const Scorer search({.options = scenario.options,
                       .special = scenario.special,
                       .target = std::vector<TokenId>{4, 5, kSpecial.eos}});
  EXPECT_EQ(search.live(), 1);
  const auto scored = Score(scenario, {4, 5, scenario.special.eos});
  ASSERT_THAT(scored, IsOk());
  EXPECT_EQ(scored->steps, 3);
  EXPECT_THAT(scored->stable, ElementsAre(ElementsAre(4), ElementsAre(4, 5),
                                          ElementsAre(4, 5, scenario.special.eos)));
}

TEST(ScoringTest, ScoresForbiddenTokens) {
  Scenario scenario{
      .options = {.min_target_tokens = 5, .max_target_tokens = 5, .no_repeat_ngram_size = 1},
      .model = RandomModel(3, 12, 0, 0)};
  for (const std::vector<TokenId>& target :
       {std::vector<TokenId>{2}, {5, 5, 5, 2}, {5, 6, 7, 8, 9, 10, 11, 2}}) {
    const auto scored = Score(scenario, target);
    ASSERT_THAT(scored, IsOk());
    ASSERT_THAT(scored->hypotheses, SizeIs(1));
    EXPECT_EQ(scored->hypotheses[0].tokens, target);
    EXPECT_FALSE(scored->hypotheses[0].ended_by_limit);
  }
}

TEST(ScoringTest, ProbabilitiesOfAllTargetsSumToOne) {
  // All targets that end within two tokens, and each pair of tokens that continues.
  constexpr int kVocabulary = 7;
  const Scenario scenario{.options = {.length_penalty = 0, .temperature = 1.3f},
                          .model = RandomModel(5, kVocabulary, 0, 0)};
  double total = 0;
  const auto add = [&](const std::vector<TokenId>& target, int tokens) {
    const auto scored = Score(scenario, target);
    ASSERT_THAT(scored, IsOk());
    const std::vector<float>& scores = scored->hypotheses[0].token_scores;
    total += std::exp(std::accumulate(scores.begin(), scores.begin() + tokens, 0.0));
  };
  add({kSpecial.eos}, 1);
  for (TokenId a = 0; a < kVocabulary; ++a) {
    if (a == kSpecial.eos) continue;
    add({a, kSpecial.eos}, 2);
    for (TokenId b = 0; b < kVocabulary; ++b) {
      if (b != kSpecial.eos) add({a, b, kSpecial.eos}, 2);
    }
  }
  EXPECT_NEAR(total, 1, 1e-5);  // 1e-5: log-probabilities are float32
}

struct CheckTargetTest : ::testing::Test {
  CheckTargetTest() {
    info.vocabulary_size = info.source_vocabulary_size = 10;
    info.limits = {.max_beam_size = 8, .max_target_tokens = 4, .max_source_tokens = 8};
    sequence.source = {5, 2};
    sequence.target = {5, 6, 2};
    sequence.options.max_target_tokens = 1;  // a limit of searches, not of given targets
  }
  auto Refused(const char* says, const char* value = "") {
    return StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr(says), HasSubstr(value)));
  }

  EngineInfo info;
  SequenceInput sequence;
};

TEST_F(CheckTargetTest, AcceptsTargetUpToTheModelsLimit) {
  EXPECT_THAT(CheckSequence(sequence, info), IsOk());
  EXPECT_EQ(RowsOf(sequence), 1);
  sequence.target = {5, 6, 7, 8, 2};
  EXPECT_THAT(CheckSequence(sequence, info), IsOk());
  sequence.target = {2};
  EXPECT_THAT(CheckSequence(sequence, info), IsOk());
  sequence.target.reset();
  EXPECT_EQ(RowsOf(sequence), sequence.options.beam_size);
}

TEST_F(CheckTargetTest, RefusalNamesTokenAndLimit) {
  sequence.target = {5, 6, 7, 8, 9, 2};
  EXPECT_THAT(CheckSequence(sequence, info), Refused("has 5 tokens", "at most 4"));
  sequence.target = {5, 6};
  EXPECT_THAT(CheckSequence(sequence, info), Refused("ends with token 6", "end token 2"));
  sequence.target = {5, 2, 2};
  EXPECT_THAT(CheckSequence(sequence, info), Refused("token 2 is the end token"));
  sequence.target = {1, 2};
  EXPECT_THAT(CheckSequence(sequence, info), Refused("token 1 is the padding token"));
  sequence.target = {10, 2};
  EXPECT_THAT(CheckSequence(sequence, info), Refused("token 10", "10 tokens"));
  sequence.target = {-1, 2};
  EXPECT_THAT(CheckSequence(sequence, info), Refused("token -1"));
  sequence.target.emplace();
  EXPECT_THAT(CheckSequence(sequence, info), Refused("target is empty", "end token"));
}

TEST_F(CheckTargetTest, RefusesOptionsThatDoNotApply) {
  sequence.prefix = {5};
  EXPECT_THAT(CheckSequence(sequence, info), Refused("prefix of 1 tokens", "leave the prefix out"));
  sequence.prefix.clear();
  sequence.options.seed = 3;
  EXPECT_THAT(CheckSequence(sequence, info), Refused("nothing is drawn"));
}

}  // namespace
}  // namespace linnet::model
