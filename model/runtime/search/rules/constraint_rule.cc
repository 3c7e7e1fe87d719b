#include "model/runtime/search/rules/constraint_rule.h"

#include <memory>
#include <utility>

#include "model/runtime/search/rules.h"

namespace linnet::model {

ConstraintRule::ConstraintRule(Constraints constraints, TokenId eos)
    : constraints_(std::move(constraints)), eos_(eos), progress_(1) {}

void ConstraintRule::Apply(const LiveHypothesis& hypothesis, RowEdit& edit) {
  const Constraints::Progress& progress = progress_[hypothesis.number];
  edit.NeedWholeRow();  // phrases may begin with any token
  if (constraints_.Unmet(progress) > 0) edit.Forbid(eos_);
  edit.Forbid(constraints_.Forbidden(progress, hypothesis.target));
  edit.Offer(constraints_.Next(progress, hypothesis.target));
}

Constraints::Progress ConstraintRule::After(const Continuation& continuation) const {
  const Constraints::Progress& progress = progress_[continuation.parent];
  if (continuation.token == eos_ || continuation.target.empty()) return progress;
  return constraints_.After(progress, continuation.target);
}

void ConstraintRule::Follow(std::span<const Continuation> live) {
  std::vector<Constraints::Progress> next;
  for (const Continuation& continuation : live) next.push_back(After(continuation));
  progress_ = std::move(next);
}

int ConstraintRule::Bank(const Continuation& continuation) const {
  return constraints_.Bank(After(continuation));
}

int ConstraintRule::Unmet(const Continuation& continuation) const {
  return constraints_.Unmet(After(continuation));
}

std::unique_ptr<Rule> NewConstraintRule(const SearchSpec& spec) {
  if (spec.constraints.empty()) return nullptr;
  return std::make_unique<ConstraintRule>(spec.constraints, spec.special.eos);
}

}  // namespace linnet::model
