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
  if (std::cmp_less(edits_.size(), live())) edits_.resize(live());
  for (int i = 0; i < live(); ++i) {
    RowEdit& edit = edits_[i];
    edit.Clear();
    edit.Forbid(special_.pad);
    const LiveHypothesis hypothesis = {.number = i,
                                       .position = steps_,
                                       .left = options_.max_target_tokens - steps_ - 1,
                                       .tokens = live_.tokens(i),
                                       .target = TargetWithin(live_.tokens(i))};
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
                  .sum = live_.sum(i),
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

std::span<const TokenId> Search::TargetWithin(std::span<const TokenId> tokens) const {
  return tokens.subspan(std::min<size_t>(silent_, tokens.size()));
}

Continuation Search::ContinuationBy(const Candidate& candidate) {
  return {.parent = candidate.parent,
          .token = candidate.token,
          .target = TargetWithin(live_.TokensWith(candidate.parent, candidate.token))};
}

absl::Status Search::NothingPossible() const {
  return absl::InternalError(absl::StrCat("no token is possible at target token ", steps_,
                                          ": each is forbidden or has no finite log-probability"));
}

void Search::End(const Candidate& candidate) {
  const auto tokens = live_.TokensWith(candidate.parent, candidate.token);
  const auto scores = live_.token_scores(candidate.parent);
  Hypothesis hypothesis = {.tokens = {tokens.begin(), tokens.end()},
                           .token_scores = {scores.begin(), scores.end()},
                           .score = candidate.sum,
                           .unmet_constraints = Unmet(candidate)};
  hypothesis.token_scores.push_back(candidate.log_probability);
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
  rows_.clear();
  for (int i = 0; i < live(); ++i) {
    ASSIGN_OR_RETURN(const LogitRow row, MakeRow(i, rows[i]));
    rows_.push_back(row);
  }
  candidates_.clear();
  RETURN_IF_ERROR(Choose(rows_, candidates_));

  next_.clear();
  for (int rank = 0; rank < candidates_.size(); ++rank) {
    const Candidate& candidate = candidates_[rank];
    if (candidate.token == special_.eos) {
      // An eos ranked below the first `beam` candidates is dropped.
      if (rank < options_.beam_size && ended_.size() < options_.beam_size) End(candidate);
    } else if (next_.size() < options_.beam_size) {
      next_.push_back(candidate);
    }
  }
  if (next_.empty() && ended_.empty()) return NothingPossible();
  if (ended_.size() == options_.beam_size) next_.clear();
  Continue();
  continuations_.clear();
  for (int i = 0; i < live(); ++i) {
    continuations_.push_back(
        {.parent = parents_[i], .token = tokens_[i], .target = TargetWithin(live_.tokens(i))});
  }
  for (const auto& rule : rules_) rule->Follow(continuations_);
  ApplyRules();
  return absl::OkStatus();
}

void Search::Continue() {
  live_.Step(next_);
  parents_.clear();
  tokens_.clear();
  for (const Candidate& candidate : next_) {
    parents_.push_back(candidate.parent);
    tokens_.push_back(candidate.token);
  }
  ++steps_;
  finished_ = next_.empty();
}

void Search::Follow(std::span<const Candidate> live, std::span<const Candidate> ended) {
  for (const Candidate& candidate : ended) End(candidate);
  next_.assign(live.begin(), live.end());
  Continue();
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
  std::span<const TokenId> common;
  if (live() > 0) common = live_.tokens(0).first(live_.common_prefix());
  if (live() == 0) {
    common = best->tokens;
  } else if (best != ended_.end()) {
    common = common.first(std::ranges::mismatch(common, best->tokens).in1 - common.begin());
  }
  common = TargetWithin(common);
  return {common.begin(), common.end()};
}

}  // namespace linnet::model
