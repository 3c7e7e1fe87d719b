#include <algorithm>
#include <vector>

#include "model/runtime/search/rules.h"

namespace linnet::model {
namespace {

// The rule of transformers' RepetitionPenaltyLogitsProcessor. The start token and silent tokens
// count as tokens of the target, as there. In transformers the rule reads logits in greedy search
// and sampling, log-probabilities in beam search.
class RepetitionPenalty : public Rule {
 public:
  RepetitionPenalty(float factor, bool of_logits, TokenId start)
      : factor_(factor), of_logits_(of_logits), start_(start) {}

  void Apply(const LiveHypothesis& hypothesis, RowEdit& edit) override {
    tokens_.assign(hypothesis.tokens.begin(), hypothesis.tokens.end());
    tokens_.push_back(start_);
    std::sort(tokens_.begin(), tokens_.end());
    tokens_.erase(std::unique(tokens_.begin(), tokens_.end()), tokens_.end());
    for (TokenId token : tokens_) {
      edit.Adjust({.token = token,
                   .logit_factor = of_logits_ ? factor_ : 1,
                   .score_factor = of_logits_ ? 1 : factor_});
    }
    // A factor below 1 may lift any of them among the best.
    if (factor_ < 1) edit.NeedWholeRow();
  }
  bool adjusts_scores() const override { return true; }

 private:
  float factor_;
  bool of_logits_;
  TokenId start_;
  std::vector<TokenId> tokens_;  // of one call; keeps its memory
};

}  // namespace

std::unique_ptr<Rule> NewRepetitionPenalty(const SearchSpec& spec) {
  const SearchOptions& options = spec.options;
  if (options.repetition_penalty == 1) return nullptr;
  return std::make_unique<RepetitionPenalty>(
      options.repetition_penalty, options.beam_size == 1 || options.sampling(), spec.special.start);
}

}  // namespace linnet::model
