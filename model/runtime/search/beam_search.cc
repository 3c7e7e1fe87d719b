#include "model/runtime/search/beam_search.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "model/runtime/search/rules/constraint_rule.h"
#include "proto/status_macros.h"

namespace linnet::model {

BeamSearch::BeamSearch(const SearchSpec& spec)
    : Search(spec, spec.options, /*device_can_choose=*/true), top_(2 * spec.options.beam_size) {
  for (const auto& rule : rules()) {
    if (const auto* found = dynamic_cast<const ConstraintRule*>(rule.get()); found != nullptr)
      constraints_ = found;
  }
}

int BeamSearch::Unmet(const Candidate& candidate) {
  return constraints_ == nullptr ? 0 : constraints_->Unmet(ContinuationBy(candidate));
}

void BeamSearch::PushBest(const LogitRow& row, TopCandidates& top) const {
  const RowEdit& rules = edit(row.parent);
  for (const Adjustment& adjustment : rules.adjusted()) {
    if (const auto logit = row.Logit(adjustment.token); logit.has_value())
      top.Push(row.Extend(adjustment, *logit));
  }
  if (const auto allowed = rules.allowed(); allowed.has_value()) {
    for (TokenId token : *allowed) {
      const auto logit = row.Logit(token);
      if (logit.has_value() && !rules.IsSetAside(token)) top.Push(row.Extend(token, *logit));
    }
    return;
  }
  PushRow(
      row, [&](TokenId token) { return rules.IsSetAside(token); }, top);
}

absl::Status BeamSearch::Choose(std::span<const LogitRow> rows,
                                std::vector<Candidate>& candidates) {
  for (const LogitRow& row : rows) {
    if (edit(row.parent).forced() != kNoToken) {
      ASSIGN_OR_RETURN(Candidate forced, Forced(row));
      top_.Push(forced);
    } else {
      PushBest(row, top_);
    }
  }
  top_.Take(candidates);
  if (constraints_ != nullptr) ApplyConstraints(rows, candidates);
  return absl::OkStatus();
}

void BeamSearch::ApplyConstraints(std::span<const LogitRow> rows,
                                  std::vector<Candidate>& candidates) {
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
  for (const Candidate& candidate : candidates)
    banks.push_back(constraints_->Bank(ContinuationBy(candidate)));
  candidates = AllocateBeam(std::move(candidates), banks, 2 * options().beam_size);
}

}  // namespace linnet::model
