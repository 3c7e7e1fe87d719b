#include "gmock/gmock.h"
#include "tests/runtime/search/rules/rule_probe.h"

namespace linnet::model {
namespace {

TEST(MinLengthTest, ForbidsTheEndOfAShortTarget) {
  const auto rule = NewMinLength({.options = {.min_target_tokens = 2}, .silent = {5}});
  std::vector<TokenId> tokens;
  for (const bool short_target : {true, true, true, false}) {
    EXPECT_EQ(EditBy(*rule, HypothesisOf(tokens)).IsForbidden(2), short_target);
    StepRules described;
    EXPECT_TRUE(rule->Describe(static_cast<int>(tokens.size()), described));
    EXPECT_EQ(described.may_end, !short_target);
    tokens.push_back(9);
  }
}

TEST(MinLengthTest, IsAbsentWithoutAMinimum) {
  EXPECT_EQ(NewMinLength({.options = {.min_target_tokens = 0}}), nullptr);
}

}  // namespace
}  // namespace linnet::model
