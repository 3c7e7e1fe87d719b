#include <utility>

#include "model/runtime/search/rules.h"

namespace linnet::model {
namespace {

class GrammarRule : public Rule {
 public:
  explicit GrammarRule(std::shared_ptr<const TokenGrammar> grammar)
      : grammar_(std::move(grammar)), states_(1, TokenGrammar::kStart) {}

  void Apply(const LiveHypothesis& hypothesis, RowEdit& edit) override {
    const TokenGrammar::State state = states_[hypothesis.number];
    edit.ForbidUnlikely(grammar_->ForbiddenTokens(state, hypothesis.left));
    if (TokenGrammar::Tail(state) > 0) {
      edit.StayInCharacter();
      return;
    }
    for (TokenId token : edit.offered()) {
      if (grammar_->IsControl(token)) edit.Exempt(token);
    }
  }

  void Follow(std::span<const Continuation> live) override {
    next_.clear();
    for (const Continuation& each : live) {
      // A target begins after the silent tokens.
      next_.push_back(each.target.empty() ? TokenGrammar::kStart
                                          : grammar_->Next(states_[each.parent], each.token));
    }
    states_.swap(next_);
  }

  // The device has the automaton of the model (beam_plan.h).
  bool Describe(int /*position*/, StepRules& /*rules*/) const override { return true; }

 private:
  std::shared_ptr<const TokenGrammar> grammar_;
  std::vector<TokenGrammar::State> states_;  // per live hypothesis
  std::vector<TokenGrammar::State> next_;    // of one call; keeps its memory
};

}  // namespace

std::unique_ptr<Rule> NewGrammarRule(const SearchSpec& spec) {
  if (spec.grammar == nullptr || spec.target.has_value()) return nullptr;
  return std::make_unique<GrammarRule>(spec.grammar);
}

}  // namespace linnet::model
