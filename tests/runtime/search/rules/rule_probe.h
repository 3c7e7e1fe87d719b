// What a rule says about the next token, for the tests of the rules.
#pragma once

#include <memory>
#include <vector>

#include "model/runtime/search/row_edit.h"
#include "model/runtime/search/rules.h"

namespace linnet::model {

// The first live hypothesis, with these tokens of which the first `silent` are silent.
inline LiveHypothesis HypothesisOf(const std::vector<TokenId>& tokens, int silent = 0,
                                   int left = 100) {
  return {.position = static_cast<int>(tokens.size()),
          .left = left,
          .tokens = tokens,
          .target = std::span(tokens).subspan(silent)};
}

// The finished edit of a rule. `offered` tokens come from another rule.
inline RowEdit EditBy(Rule& rule, const LiveHypothesis& hypothesis,
                      const std::vector<TokenId>& offered = {}) {
  RowEdit edit;
  edit.Offer(offered);
  rule.Apply(hypothesis, edit);
  edit.Finish();
  return edit;
}

// The tokens that the rule forbids after `tokens`, ascending.
inline std::vector<TokenId> ForbiddenBy(Rule& rule, const std::vector<TokenId>& tokens) {
  const RowEdit edit = EditBy(rule, HypothesisOf(tokens));
  return {edit.set_aside().begin(), edit.set_aside().end()};
}

}  // namespace linnet::model
