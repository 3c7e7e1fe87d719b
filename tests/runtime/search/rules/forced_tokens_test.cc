#include "gmock/gmock.h"
#include "tests/runtime/search/rules/rule_probe.h"

namespace linnet::model {
namespace {

TEST(ForcedTokensTest, ForcesSilentTokensThenPrefixThenEosAtTheLimit) {
  const auto rule =
      NewForcedTokens({.options = {.max_target_tokens = 3}, .prefix = {7, 8}, .silent = {5}});
  std::vector<TokenId> tokens;
  for (const TokenId expected : {5, 7, 8, kNoToken, 2}) {
    const RowEdit edit = EditBy(*rule, HypothesisOf(tokens));
    EXPECT_EQ(edit.forced(), expected);
    EXPECT_EQ(edit.silent(), expected == 5);
    StepRules described;
    EXPECT_TRUE(rule->Describe(static_cast<int>(tokens.size()), described));
    EXPECT_EQ(described.forced, expected);
    EXPECT_EQ(described.silent, expected == 5);
    tokens.push_back(9);
  }
}

TEST(ForcedTokensTest, LimitCutsThePrefix) {
  const auto rule = NewForcedTokens({.options = {.max_target_tokens = 1}, .prefix = {7, 8}});
  EXPECT_EQ(EditBy(*rule, HypothesisOf({7})).forced(), 2);
}

TEST(ForcedTokensTest, TargetToScoreHasNoLimit) {
  const auto rule = NewForcedTokens(
      {.options = {.max_target_tokens = 1}, .silent = {5}, .target = std::vector{7, 8, 2}});
  EXPECT_EQ(EditBy(*rule, HypothesisOf({5, 7})).forced(), 8);
  EXPECT_EQ(EditBy(*rule, HypothesisOf({5, 7, 8})).forced(), 2);
}

}  // namespace
}  // namespace linnet::model
