#include <vector>

#include "model/runtime/search/repeats.h"
#include "model/runtime/search/rules.h"

namespace linnet::model {
namespace {

class NgramRepeats : public Rule {
 public:
  NgramRepeats(const SearchOptions& options, const SpecialTokens& special)
      : size_(options.no_repeat_ngram_size),
        times_(options.max_ngram_repeats),
        start_(special.start),
        eos_(special.eos) {}

  void Apply(const LiveHypothesis& hypothesis, RowEdit& edit) override {
    if (edit.in_character()) return;
    repeats_.clear();
    ExcludeConsecutiveRepeats(hypothesis.tokens, times_, repeats_);
    for (TokenId token : edit.offered()) std::erase(repeats_, token);  // a phrase may repeat itself
    if (size_ > 0) {
      history_.assign(1, start_);
      history_.insert(history_.end(), hypothesis.tokens.begin(), hypothesis.tokens.end());
      ExcludeRepeatedNgrams(history_, size_, repeats_);
    }
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
  TokenId start_, eos_;
  std::vector<TokenId> repeats_, history_;  // of one call; keep their memory
};

}  // namespace

std::unique_ptr<Rule> NewNgramRepeats(const SearchSpec& spec) {
  const SearchOptions& options = spec.options;
  if (options.no_repeat_ngram_size == 0 && options.max_ngram_repeats == 0) return nullptr;
  if (spec.target.has_value()) return nullptr;
  return std::make_unique<NgramRepeats>(options, spec.special);
}

}  // namespace linnet::model
