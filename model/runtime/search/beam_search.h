#pragma once

#include <span>
#include <vector>

#include "model/runtime/search/search.h"

namespace linnet::model {

class ConstraintRule;

// Beam search, by the rules of fairseq's SequenceGenerator: candidates are the best 2·beam of
// beam × vocabulary by cumulative score; an eos among the first `beam` of them ends a hypothesis,
// one ranked lower is dropped; the best `beam` others stay live; the search ends when `beam`
// hypotheses have ended or the limit is reached, where eos is forced. Greedy search is beam 1.
//
// With constraints it is fairseq's lexically constrained search: the best continuation of each
// hypothesis and all tokens that continue a phrase are additional candidates, and the beam is
// allocated between banks of equal progress. Hypotheses that end at the limit rank by the number of
// met phrases first.
class BeamSearch final : public Search {
 public:
  explicit BeamSearch(const SearchSpec& spec);

 private:
  absl::Status Choose(std::span<const LogitRow> rows, std::vector<Candidate>& candidates) override;
  int wanted() const override { return 2 * options().beam_size; }
  int Unmet(const Candidate& candidate) override;
  // Adds the candidates that constraints offer, and allocates the beam.
  void ApplyConstraints(std::span<const LogitRow> rows, std::vector<Candidate>& candidates);
  // Pushes the best candidates of a row in which no token is forced.
  void PushBest(const LogitRow& row, TopCandidates& top) const;

  const ConstraintRule* constraints_ = nullptr;  // one of rules(), or null
  TopCandidates top_;                            // empty between steps; keeps its memory
};

}  // namespace linnet::model
