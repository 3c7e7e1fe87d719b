#include "model/runtime/search/search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/runtime/search/rules.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

// True if `a` is a better result than `b`; both have ended.
bool Preferred(const Hypothesis& a, const Hypothesis& b) {
  if (a.unmet_constraints != b.unmet_constraints) return a.unmet_constraints < b.unmet_constraints;
  return a.score > b.score;
}

// Removes the first tokens, if there are so many.
void DropFirst(int count, auto& list) {
  list.erase(list.begin(), list.begin() + std::min<int64_t>(count, std::ssize(list)));
}

std::vector<std::unique_ptr<Rule>> RulesFor(const SearchSpec& spec) {
  std::vector<std::unique_ptr<Rule>> rules;
  for (NewRule make : kRules) {
    if (auto rule = make(spec); rule != nullptr) rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace

Search::Search(const SearchSpec& spec, const SearchOptions& options, bool device_can_choose)
    : options_(options),
      special_(spec.special),
      silent_(spec.silent_tokens()),
      known_(spec.known_start()),
      rules_(RulesFor(spec)),
      live_(1),
      parents_({0}),
      tokens_({spec.special.start}) {
  options_.min_target_tokens += silent_;
  options_.max_target_tokens += silent_;
  known_.resize(std::min<size_t>(known_.size(), options_.max_target_tokens));
  StepRules described;
  has_device_form_ = device_can_choose && std::ranges::all_of(rules_, [&](const auto& rule) {
                       return rule->Describe(0, described);
                     });
  ApplyRules();
}

StepRules Search::Describe(int position) const {
  StepRules described = {.left = options_.max_target_tokens - position - 1};
  for (const auto& rule : rules_) rule->Describe(position, described);
  return described;
}

void Search::ApplyRules() {
  if (edits_.size() < live_.size()) edits_.resize(live_.size());
  for (int i = 0; i < std::ssize(live_); ++i) {
    RowEdit& edit = edits_[i];
    edit.Clear();
    edit.Forbid(special_.pad);
    const LiveHypothesis hypothesis = {.number = i,
                                       .position = steps_,
                                       .left = options_.max_target_tokens - steps_ - 1,
                                       .tokens = live_[i].tokens,
                                       .target = TargetWithin(live_[i].tokens)};
    for (const auto& rule : rules_) {
      if (edit.forced() == kNoToken || rule->adjusts_scores()) rule->Apply(hypothesis, edit);
    }
    edit.Finish();
  }
}

absl::StatusOr<LogitRow> Search::MakeRow(int i, const RowLogits& row) const {
  if (row.logits.empty() || (!row.tokens.empty() && row.tokens.size() != row.logits.size())) {
    return absl::InternalError(absl::StrCat("a row has ", row.logits.size(), " logits for ",
                                            row.tokens.size(), " tokens"));
  }
  if (!std::isfinite(row.log_normalizer)) {
    return absl::InternalError(absl::StrCat("the model gave no probabilities at target token ",
                                            steps_, ": the normalizer of hypothesis ", i, " is ",
                                            row.log_normalizer));
  }
  return LogitRow{.logits = row.logits,
                  .tokens = row.tokens,
                  .temperature = options_.temperature,
                  .log_normalizer = row.log_normalizer,
                  .sum = live_[i].score,
                  .parent = i};
}

absl::StatusOr<Candidate> Search::Forced(const LogitRow& row) const {
  const RowEdit& edit = edits_[row.parent];
  const TokenId token = edit.forced();
  if (edit.silent()) return Candidate{.sum = row.sum, .parent = row.parent, .token = token};
  if (const auto candidate = edit.CandidateFor(row, token); candidate.has_value())
    return *candidate;
  if (!row.tokens.empty()) {
    return absl::InternalError(absl::StrCat("a row lacks the logit of token ", token));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "forced token ", token, " is outside the vocabulary of ", row.logits.size(), " tokens"));
}

std::span<const TokenId> Search::TargetWithin(const std::vector<TokenId>& tokens) const {
  return std::span(tokens).subspan(std::min<size_t>(silent_, tokens.size()));
}

Continuation Search::ContinuationBy(const Candidate& candidate,
                                    std::vector<TokenId>& buffer) const {
  buffer = live_[candidate.parent].tokens;
  buffer.push_back(candidate.token);
  return {.parent = candidate.parent, .token = candidate.token, .target = TargetWithin(buffer)};
}

absl::Status Search::NothingPossible() const {
  return absl::InternalError(absl::StrCat("no token is possible at target token ", steps_,
                                          ": each is forbidden or has no finite log-probability"));
}

Hypothesis Search::Extend(const Candidate& candidate) const {
  Hypothesis hypothesis = live_[candidate.parent];
  hypothesis.tokens.push_back(candidate.token);
  hypothesis.token_scores.push_back(candidate.log_probability);
  hypothesis.score = candidate.sum;
  hypothesis.unmet_constraints = Unmet(candidate);
  return hypothesis;
}

void Search::End(Hypothesis hypothesis) {
  if (options_.normalize_scores) {
    hypothesis.score /=
        std::pow(static_cast<float>(hypothesis.tokens.size()), options_.length_penalty);
  }
  hypothesis.ended_by_limit = steps_ >= options_.max_target_tokens;
  ended_.push_back(std::move(hypothesis));
}

absl::Status Search::Advance(std::span<const float> logits,
                             std::span<const float> log_normalizers) {
  const TokenId largest =
      std::max({special_.bos, special_.pad, special_.eos, special_.unk, special_.start});
  if (log_normalizers.size() != live() || log_normalizers.empty() || logits.size() % live() != 0 ||
      logits.size() / live() <= largest) {
    return absl::InternalError(absl::StrCat(logits.size(), " logits and ", log_normalizers.size(),
                                            " normalizers do not make rows for ", live(),
                                            " hypotheses"));
  }
  const size_t vocabulary = logits.size() / live();
  std::vector<RowLogits> rows;
  for (int i = 0; i < live(); ++i) {
    rows.push_back({.logits = logits.subspan(i * vocabulary, vocabulary),
                    .log_normalizer = log_normalizers[i]});
  }
  return Advance(rows);
}

absl::Status Search::Advance(std::span<const RowLogits> rows) {
  if (finished_) return absl::InternalError("a search that has finished was advanced");
  if (rows.size() != live()) {
    return absl::InternalError(
        absl::StrCat(rows.size(), " rows were given for ", live(), " hypotheses"));
  }
  std::vector<LogitRow> checked;
  for (int i = 0; i < live(); ++i) {
    ASSIGN_OR_RETURN(LogitRow row, MakeRow(i, rows[i]));
    checked.push_back(row);
  }
  ASSIGN_OR_RETURN(std::vector<Candidate> candidates, Choose(checked));

  std::vector<Hypothesis> next;
  std::vector<int> parents;
  std::vector<TokenId> tokens;
  for (int rank = 0; rank < candidates.size(); ++rank) {
    const Candidate& candidate = candidates[rank];
    if (candidate.token == special_.eos) {
      // An eos ranked below the first `beam` candidates is dropped.
      if (rank < options_.beam_size && ended_.size() < options_.beam_size) End(Extend(candidate));
    } else if (next.size() < options_.beam_size) {
      next.push_back(Extend(candidate));
      parents.push_back(candidate.parent);
      tokens.push_back(candidate.token);
    }
  }
  if (next.empty() && ended_.empty()) return NothingPossible();
  ++steps_;
  finished_ = ended_.size() == options_.beam_size || next.empty();
  if (finished_) {
    next.clear();
    parents.clear();
    tokens.clear();
  }
  live_ = std::move(next);
  parents_ = std::move(parents);
  tokens_ = std::move(tokens);
  std::vector<Continuation> continuations;
  for (int i = 0; i < live(); ++i) {
    continuations.push_back(
        {.parent = parents_[i], .token = tokens_[i], .target = TargetWithin(live_[i].tokens)});
  }
  for (const auto& rule : rules_) rule->Follow(continuations);
  ApplyRules();
  return absl::OkStatus();
}

void Search::Follow(std::span<const Candidate> live, std::span<const Candidate> ended) {
  std::vector<Hypothesis> next;
  for (const Candidate& candidate : ended) End(Extend(candidate));
  parents_.clear();
  tokens_.clear();
  for (const Candidate& candidate : live) {
    next.push_back(Extend(candidate));
    parents_.push_back(candidate.parent);
    tokens_.push_back(candidate.token);
  }
  live_ = std::move(next);
  ++steps_;
  finished_ = live.empty();
}

std::vector<Hypothesis> Search::Results() const {
  std::vector<Hypothesis> results = ended_;
  std::stable_sort(results.begin(), results.end(), Preferred);
  if (results.size() > options_.n_best) results.resize(options_.n_best);
  for (Hypothesis& result : results) {
    DropFirst(silent_, result.tokens);
    DropFirst(silent_, result.token_scores);
  }
  return results;
}

std::vector<TokenId> Search::StablePrefix() const {
  const auto best = std::min_element(ended_.begin(), ended_.end(), Preferred);
  std::vector<TokenId> common = best != ended_.end() ? best->tokens : live_.front().tokens;
  for (const Hypothesis& hypothesis : live_) {
    const auto difference = std::mismatch(common.begin(), common.end(), hypothesis.tokens.begin(),
                                          hypothesis.tokens.end());
    common.erase(difference.first, common.end());
  }
  DropFirst(silent_, common);
  return common;
}

}  // namespace linnet::model
