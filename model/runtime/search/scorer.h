#pragma once

#include <span>
#include <vector>

#include "model/runtime/search/search.h"

namespace linnet::model {

// Scores the target of the spec (eos last, and nowhere else): its tokens are forced one by one, and
// nothing is searched. Only the options of the score apply: temperature, the penalties, and
// normalize_scores. Given the same rows, the score is bit-identical to that of a search that finds
// the same tokens.
class Scorer final : public Search {
 public:
  explicit Scorer(const SearchSpec& spec);

 private:
  absl::Status Choose(std::span<const LogitRow> rows, std::vector<Candidate>& candidates) override;
  int wanted() const override { return 0; }
};

}  // namespace linnet::model
