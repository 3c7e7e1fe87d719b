#include "model/runtime/search/rules.h"

namespace linnet::model {
namespace {

class UnknownPenalty : public Rule {
 public:
  UnknownPenalty(TokenId unk, float penalty) : unk_(unk), penalty_(penalty) {}

  void Apply(const LiveHypothesis& /*hypothesis*/, RowEdit& edit) override {
    edit.Adjust({.token = unk_, .penalty = penalty_});
    edit.NeedLogit(unk_);
  }
  bool adjusts_scores() const override { return true; }

  bool Describe(int /*position*/, StepRules& rules) const override {
    rules.unknown_penalty = penalty_;
    return true;
  }

 private:
  TokenId unk_;
  float penalty_;
};

}  // namespace

std::unique_ptr<Rule> NewUnknownPenalty(const SearchSpec& spec) {
  if (spec.options.unknown_penalty == 0) return nullptr;
  return std::make_unique<UnknownPenalty>(spec.special.unk, spec.options.unknown_penalty);
}

}  // namespace linnet::model
