#include "model/runtime/search/rules.h"

namespace linnet::model {
namespace {

class MinLength : public Rule {
 public:
  MinLength(int min_tokens, TokenId eos) : min_tokens_(min_tokens), eos_(eos) {}

  void Apply(const LiveHypothesis& hypothesis, RowEdit& edit) override {
    if (hypothesis.position < min_tokens_) edit.Forbid(eos_);
  }

  bool Describe(int position, StepRules& rules) const override {
    rules.may_end = position >= min_tokens_;
    return true;
  }

 private:
  int min_tokens_;  // silent ones included
  TokenId eos_;
};

}  // namespace

std::unique_ptr<Rule> NewMinLength(const SearchSpec& spec) {
  if (spec.options.min_target_tokens == 0 || spec.target.has_value()) return nullptr;
  return std::make_unique<MinLength>(spec.options.min_target_tokens + spec.silent_tokens(),
                                     spec.special.eos);
}

}  // namespace linnet::model
