#pragma once

#include <span>
#include <vector>

#include "model/runtime/search/constraints.h"
#include "model/runtime/search/rule.h"

namespace linnet::model {

// The phrases that a target must contain: it does not end before it has met all of them, the tokens
// that begin or continue a phrase are offered, and no word goes on behind a phrase. A beam search
// allocates its beam by the progress of each candidate (beam_search.h).
class ConstraintRule : public Rule {
 public:
  ConstraintRule(Constraints constraints, TokenId eos);

  void Apply(const LiveHypothesis& hypothesis, RowEdit& edit) override;
  void Follow(std::span<const Continuation> live) override;

  // The bank of a continuation (Constraints::Bank), and the number of phrases that it does not
  // contain.
  int Bank(const Continuation& continuation) const;
  int Unmet(const Continuation& continuation) const;

 private:
  Constraints::Progress After(const Continuation& continuation) const;

  Constraints constraints_;
  TokenId eos_;
  std::vector<Constraints::Progress> progress_;  // per live hypothesis
};

}  // namespace linnet::model
