#include "model/runtime/search/rules/constraint_rule.h"

#include "gmock/gmock.h"
#include "tests/runtime/search/rules/rule_probe.h"

namespace linnet::model {
namespace {

using ::testing::ElementsAre;

TEST(ConstraintRuleTest, OffersPhrasesAndForbidsTheEndUntilAllAreMet) {
  const Constraints phrases(std::vector<std::vector<TokenId>>{{5, 6}, {7}});
  const auto rule = NewConstraintRule({.constraints = phrases});
  const RowEdit first = EditBy(*rule, HypothesisOf({}));
  EXPECT_THAT(first.offered(), ElementsAre(5, 7));
  EXPECT_TRUE(first.IsForbidden(2));
  EXPECT_TRUE(first.Need(10).all);

  std::vector<TokenId> target;
  for (TokenId token : {5, 6, 7}) {
    target.push_back(token);
    rule->Follow(std::vector<Continuation>{{.parent = 0, .token = token, .target = target}});
    EXPECT_EQ(EditBy(*rule, HypothesisOf(target)).IsForbidden(2), token != 7);
  }
  StepRules described;
  EXPECT_FALSE(rule->Describe(0, described)) << "searched on the host";
}

TEST(ConstraintRuleTest, RanksContinuationsByTheirPhrases) {
  ConstraintRule rule(Constraints(std::vector<std::vector<TokenId>>{{5, 6}, {7}}), 2);
  const std::vector<TokenId> begun = {5}, met = {7}, other = {9};
  EXPECT_EQ(rule.Bank({.token = 5, .target = begun}), 1);
  EXPECT_EQ(rule.Unmet({.token = 5, .target = begun}), 2);
  EXPECT_EQ(rule.Unmet({.token = 7, .target = met}), 1);
  EXPECT_EQ(rule.Bank({.token = 9, .target = other}), 0);
  EXPECT_EQ(rule.Unmet({.token = 7, .target = {}}), 2) << "a silent token is in no phrase";
}

TEST(ConstraintRuleTest, IsAbsentWithoutPhrases) { EXPECT_EQ(NewConstraintRule({}), nullptr); }

}  // namespace
}  // namespace linnet::model
