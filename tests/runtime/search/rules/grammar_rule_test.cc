#include "gmock/gmock.h"
#include "tests/runtime/search/rules/rule_probe.h"

namespace linnet::model {
namespace {

using ::testing::ElementsAre;

// Text, end, the lead of two bytes, a following byte, a control piece.
std::shared_ptr<const TokenGrammar> Grammar() {
  using G = TokenGrammar;
  return std::make_shared<const TokenGrammar>(
      std::vector<G::Class>{G::kText, G::kEnd, G::kLead2, G::kByte80, G::kControl});
}

std::vector<TokenId> SetAside(const RowEdit& edit) {
  return {edit.set_aside().begin(), edit.set_aside().end()};
}

TEST(GrammarRuleTest, FollowsTheStateOfEachHypothesis) {
  const auto rule = NewGrammarRule({.grammar = Grammar()});
  EXPECT_THAT(SetAside(EditBy(*rule, HypothesisOf({}))), ElementsAre(3, 4));
  const std::vector<TokenId> text = {0}, lead = {2};
  rule->Follow(
      std::vector<Continuation>{{.token = 0, .target = text}, {.token = 2, .target = lead}});
  LiveHypothesis hypothesis = HypothesisOf(lead);
  EXPECT_FALSE(EditBy(*rule, hypothesis).in_character());
  hypothesis.number = 1;
  const RowEdit inside = EditBy(*rule, hypothesis);
  EXPECT_TRUE(inside.in_character());
  EXPECT_TRUE(inside.Need(4).all) << "nearly all tokens are forbidden";
  EXPECT_THAT(SetAside(inside), ElementsAre(0, 1, 2, 4));
}

TEST(GrammarRuleTest, CharacterFitsBeforeTheLimit) {
  const auto rule = NewGrammarRule({.grammar = Grammar()});
  EXPECT_THAT(SetAside(EditBy(*rule, HypothesisOf({}, 0, /*left=*/0))), ElementsAre(2, 3, 4));
}

TEST(GrammarRuleTest, ControlPieceMayBeginAPhrase) {
  const auto rule = NewGrammarRule({.grammar = Grammar()});
  EXPECT_THAT(SetAside(EditBy(*rule, HypothesisOf({}), /*offered=*/{3, 4})), ElementsAre(3));
}

TEST(GrammarRuleTest, TargetBeginsAfterTheSilentTokens) {
  const auto rule = NewGrammarRule({.grammar = Grammar()});
  rule->Follow(std::vector<Continuation>{{.token = 2, .target = {}}});
  EXPECT_FALSE(EditBy(*rule, HypothesisOf({2}, /*silent=*/1)).in_character());
}

}  // namespace
}  // namespace linnet::model
