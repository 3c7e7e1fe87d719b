#include <optional>
#include <vector>

#include "model/runtime/search/repeats.h"
#include "model/runtime/search/rules.h"

namespace linnet::model {
namespace {

class NgramRepeats : public Rule {
 public:
  NgramRepeats(const SearchOptions& options, const SpecialTokens& special)
      : size_(options.no_repeat_ngram_size), times_(options.max_ngram_repeats), eos_(special.eos) {
    if (size_ > 0) history_.emplace(size_, special.start);
  }

  void Apply(const LiveHypothesis& hypothesis, RowEdit& edit) override {
    if (history_.has_value()) history_->Remember(hypothesis.tokens);
    if (edit.in_character()) return;
    repeats_.clear();
    ExcludeConsecutiveRepeats(hypothesis.tokens, times_, repeats_);
    for (TokenId token : edit.offered()) std::erase(repeats_, token);  // a phrase may repeat itself
    if (history_.has_value()) history_->ExcludeRepeated(hypothesis.tokens, repeats_);
    // eos is exempt: in models whose start token is eos, a rule against repeated single tokens
    // would forbid it for good.
    std::erase(repeats_, eos_);
    edit.Forbid(repeats_);
  }

  bool Describe(int /*position*/, StepRules& rules) const override {
    rules.no_repeat_ngram_size = size_;
    rules.max_ngram_repeats = times_;
    return true;
  }

 private:
  int size_, times_;
  TokenId eos_;
  std::optional<NgramHistory> history_;
  std::vector<TokenId> repeats_;  // of one call; keeps its memory
};

}  // namespace

std::unique_ptr<Rule> NewNgramRepeats(const SearchSpec& spec) {
  const SearchOptions& options = spec.options;
  if (options.no_repeat_ngram_size == 0 && options.max_ngram_repeats == 0) return nullptr;
  if (spec.target.has_value()) return nullptr;
  return std::make_unique<NgramRepeats>(options, spec.special);
}

}  // namespace linnet::model
