#include <algorithm>
#include <limits>
#include <utility>

#include "model/runtime/search/rules.h"

namespace linnet::model {
namespace {

class ForcedTokens : public Rule {
 public:
  ForcedTokens(std::vector<TokenId> tokens, int silent, int limit, TokenId eos)
      : tokens_(std::move(tokens)), silent_(silent), limit_(limit), eos_(eos) {}

  void Apply(const LiveHypothesis& hypothesis, RowEdit& edit) override {
    const TokenId token = After(hypothesis.position);
    if (token != kNoToken) edit.Force(token, hypothesis.position < silent_);
  }

  bool Describe(int position, StepRules& rules) const override {
    rules.forced = After(position);
    rules.silent = position < silent_;
    return true;
  }

 private:
  TokenId After(int position) const {
    if (position >= limit_) return eos_;
    return position < std::ssize(tokens_) ? tokens_[position] : kNoToken;
  }

  std::vector<TokenId> tokens_;
  int silent_, limit_;
  TokenId eos_;
};

}  // namespace

std::unique_ptr<Rule> NewForcedTokens(const SearchSpec& spec) {
  const int limit = spec.target.has_value() ? std::numeric_limits<int>::max()
                                            : spec.options.max_target_tokens + spec.silent_tokens();
  return std::make_unique<ForcedTokens>(spec.known_start(), spec.silent_tokens(), limit,
                                        spec.special.eos);
}

}  // namespace linnet::model
