#include <utility>

#include "model/runtime/search/rules.h"

namespace linnet::model {
namespace {

class WishedLength : public Rule {
 public:
  WishedLength(std::shared_ptr<const TargetLength> length, TokenId eos)
      : length_(std::move(length)), eos_(eos) {}

  void Apply(const LiveHypothesis& hypothesis, RowEdit& edit) override {
    const TargetLength::State state = length_->After(hypothesis.target);
    if (state == TargetLength::State::kShort) edit.Forbid(eos_);
    if (state == TargetLength::State::kFull) edit.ForbidUnlikely(length_->word_starts());
  }

 private:
  std::shared_ptr<const TargetLength> length_;
  TokenId eos_;
};

}  // namespace

std::unique_ptr<Rule> NewWishedLength(const SearchSpec& spec) {
  if (spec.length == nullptr || spec.target.has_value()) return nullptr;
  return std::make_unique<WishedLength>(spec.length, spec.special.eos);
}

}  // namespace linnet::model
