#include "gmock/gmock.h"
#include "tests/runtime/search/rules/rule_probe.h"

namespace linnet::model {
namespace {

TEST(UnknownPenaltyTest, LowersTheScoreOfTheUnknownToken) {
  const auto rule = NewUnknownPenalty({.options = {.unknown_penalty = 1.5f}});
  EXPECT_TRUE(rule->adjusts_scores()) << "a forced unknown token pays as well";
  const RowEdit edit = EditBy(*rule, HypothesisOf({}));
  const std::vector<float> logits = {0, 0, 0, 4, 1};
  const LogitRow row = {.logits = logits, .log_normalizer = 2};
  EXPECT_EQ(edit.CandidateFor(row, 3)->log_probability, 4 - 2 - 1.5f);
  EXPECT_EQ(edit.CandidateFor(row, 4)->log_probability, 1 - 2);
  EXPECT_EQ(edit.Need(4).also, 3) << "a negative penalty may lift it among the best";
  StepRules described;
  EXPECT_TRUE(rule->Describe(0, described));
  EXPECT_EQ(described.unknown_penalty, 1.5f);
}

TEST(UnknownPenaltyTest, IsAbsentWithoutAPenalty) { EXPECT_EQ(NewUnknownPenalty({}), nullptr); }

}  // namespace
}  // namespace linnet::model
