#include "model/runtime/search/beam_search.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "model/runtime/search/rules/constraint_rule.h"
#include "proto/status_macros.h"

namespace linnet::model {

BeamSearch::BeamSearch(const SearchSpec& spec)
    : Search(spec, spec.options, /*device_can_choose=*/true) {
  for (const auto& rule : rules()) {
    if (const auto* found = dynamic_cast<const ConstraintRule*>(rule.get()); found != nullptr)
      constraints_ = found;
  }
}

int BeamSearch::Unmet(const Candidate& candidate) const {
  if (constraints_ == nullptr) return 0;
  std::vector<TokenId> tokens;
  return constraints_->Unmet(ContinuationBy(candidate, tokens));
}

absl::StatusOr<std::vector<Candidate>> BeamSearch::Choose(std::span<const LogitRow> rows) {
  return constraints_ == nullptr ? BestCandidates(rows) : ConstrainedCandidates(rows);
}

void BeamSearch::PushBest(const LogitRow& row, TopCandidates& top) const {
  const RowEdit& rules = edit(row.parent);
  for (const Adjustment& adjustment : rules.adjusted()) {
    if (const auto logit = row.Logit(adjustment.token); logit.has_value())
      top.Push(row.Extend(adjustment, *logit));
  }
  PushRow(row, rules.set_aside(), top);
}

absl::StatusOr<std::vector<Candidate>> BeamSearch::BestCandidates(
    std::span<const LogitRow> rows) const {
  TopCandidates top(2 * options().beam_size);
  for (const LogitRow& row : rows) {
    if (edit(row.parent).forced() != kNoToken) {
      ASSIGN_OR_RETURN(Candidate forced, Forced(row));
      top.Push(forced);
    } else {
      PushBest(row, top);
    }
  }
  return top.Take();
}

absl::StatusOr<std::vector<Candidate>> BeamSearch::ConstrainedCandidates(
    std::span<const LogitRow> rows) const {
  ASSIGN_OR_RETURN(std::vector<Candidate> candidates, BestCandidates(rows));
  for (const LogitRow& row : rows) {
    const RowEdit& rules = edit(row.parent);
    if (rules.forced() != kNoToken) continue;  // the forced token has no alternatives
    TopCandidates top(1);
    PushBest(row, top);
    for (const Candidate& candidate : top.Take()) candidates.push_back(candidate);
    for (TokenId token : rules.offered()) {
      if (rules.IsForbidden(token)) continue;
      const std::optional<Candidate> candidate = rules.CandidateFor(row, token);
      if (candidate.has_value() && std::isfinite(candidate->sum)) candidates.push_back(*candidate);
    }
  }
  std::sort(candidates.begin(), candidates.end(), Better);
  const auto same = [](const Candidate& a, const Candidate& b) {
    return a.parent == b.parent && a.token == b.token;
  };
  candidates.erase(std::unique(candidates.begin(), candidates.end(), same), candidates.end());
  std::vector<int> banks;
  std::vector<TokenId> tokens;
  for (const Candidate& candidate : candidates)
    banks.push_back(constraints_->Bank(ContinuationBy(candidate, tokens)));
  return AllocateBeam(std::move(candidates), banks, 2 * options().beam_size);
}

}  // namespace linnet::model
