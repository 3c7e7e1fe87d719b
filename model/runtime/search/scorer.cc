#include "model/runtime/search/scorer.h"

#include <cmath>
#include <limits>

#include "proto/status_macros.h"

namespace linnet::model {
namespace {

SearchOptions ScoringOptions(SearchOptions options) {
  options.beam_size = options.n_best = 1;
  options.max_target_tokens = std::numeric_limits<int>::max() / 2;  // the target's eos ends it
  return options;
}

}  // namespace

Scorer::Scorer(const SearchSpec& spec)
    : Search(spec, ScoringOptions(spec.options), /*device_can_choose=*/true) {}

absl::Status Scorer::Choose(std::span<const LogitRow> rows, std::vector<Candidate>& candidates) {
  ASSIGN_OR_RETURN(const Candidate forced, Forced(rows.front()));
  if (!std::isfinite(forced.sum)) return NothingPossible();
  candidates.push_back(forced);
  return absl::OkStatus();
}

}  // namespace linnet::model
