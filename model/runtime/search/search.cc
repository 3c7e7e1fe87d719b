#include "model/runtime/search/search.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/runtime/search/candidates.h"
#include "model/runtime/search/repeats.h"
#include "model/runtime/search/sampling.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

// Max number of tokens forbidden by the grammar among a row's highest, above which the search needs
// the whole row.
constexpr int kMaxBarredAmongBest = 8;
// Max number of a row's highest logits that a search asks for. All rows of a step have room for as
// many as one of them needs; beyond this the whole rows are cheaper.
constexpr int kMaxBest = 1024;

// True if `a` is a better result than `b`; both have ended.
bool Preferred(const Hypothesis& a, const Hypothesis& b) {
  if (a.unmet_constraints != b.unmet_constraints) return a.unmet_constraints < b.unmet_constraints;
  return a.score > b.score;
}

// Removes the first tokens, if there are so many.
void DropFirst(int count, auto& list) {
  list.erase(list.begin(), list.begin() + std::min<int64_t>(count, std::ssize(list)));
}

}  // namespace

BeamSearch::BeamSearch(const SearchOptions& options, const SpecialTokens& special,
                       std::vector<TokenId> prefix, Constraints constraints,
                       std::shared_ptr<const TokenGrammar> grammar, std::vector<TokenId> silent,
                       std::shared_ptr<const TargetLength> length)
    : options_(options),
      special_(special),
      forced_(std::move(silent)),
      silent_(static_cast<int>(forced_.size())),
      constraints_(std::move(constraints)),
      grammar_(std::move(grammar)),
      length_(std::move(length)),
      live_(1),
      progress_(1),
      states_(1, TokenGrammar::kStart),
      numbers_({0}),
      parents_({0}),
      tokens_({special.start}) {
  forced_.insert(forced_.end(), prefix.begin(), prefix.end());
  options_.min_target_tokens += silent_;
  options_.max_target_tokens += silent_;
  MakeRules();
}

BeamSearch BeamSearch::Scoring(const SearchOptions& options, const SpecialTokens& special,
                               std::vector<TokenId> target, std::vector<TokenId> silent) {
  SearchOptions scoring = options;
  scoring.beam_size = scoring.n_best = 1;
  scoring.max_target_tokens = std::numeric_limits<int>::max() / 2;  // the target's eos ends it
  scoring.top_k = 0;
  scoring.top_p = 1;
  scoring.seed.reset();
  return BeamSearch(scoring, special, std::move(target), {}, nullptr, std::move(silent));
}

TokenId BeamSearch::forced_after(int steps) const {
  if (steps >= options_.max_target_tokens) return special_.eos;
  return steps < forced_.size() ? forced_[steps] : kNoToken;
}

BeamSearch::Rules BeamSearch::RulesFor(int i) const {
  const Hypothesis& hypothesis = live_[i];
  Rules rules;
  rules.forced = forced_after(steps_);
  if (rules.forced != kNoToken) return rules;
  if (!InCharacter(i)) rules.excluded = Repeats(i);
  rules.excluded.push_back(special_.pad);
  const TargetLength::State length = length_ == nullptr
                                         ? TargetLength::State::kEnough
                                         : length_->After(TargetOf(hypothesis.tokens));
  if (steps_ < options_.min_target_tokens || constraints_.Unmet(progress_[i]) > 0 ||
      length == TargetLength::State::kShort)
    rules.excluded.push_back(special_.eos);
  const auto forbidden = constraints_.Forbidden(progress_[i], TargetOf(hypothesis.tokens));
  rules.excluded.insert(rules.excluded.end(), forbidden.begin(), forbidden.end());
  std::sort(rules.excluded.begin(), rules.excluded.end());
  const auto excluded = std::ssize(rules.excluded);
  AddBarred(i, rules.excluded);
  if (length == TargetLength::State::kFull) AddWordStarts(rules.excluded);
  rules.barred = static_cast<int>(std::max<int64_t>(std::ssize(rules.excluded) - excluded, 0));
  if (options_.unknown_penalty != 0 &&
      !std::binary_search(rules.excluded.begin(), rules.excluded.end(), special_.unk)) {
    rules.penalise_unknown = true;
    rules.excluded.insert(
        std::lower_bound(rules.excluded.begin(), rules.excluded.end(), special_.unk), special_.unk);
  }
  return rules;
}

std::vector<TokenId> BeamSearch::Repeats(int i) const {
  const std::vector<TokenId>& target = live_[i].tokens;
  std::vector<TokenId> repeats;
  ExcludeConsecutiveRepeats(target, options_.max_ngram_repeats, repeats);
  if (!constraints_.empty()) {  // a phrase may repeat itself
    for (TokenId token : constraints_.Next(progress_[i], TargetOf(target)))
      std::erase(repeats, token);
  }
  if (options_.no_repeat_ngram_size > 0) {
    std::vector<TokenId> history = {special_.start};
    history.insert(history.end(), target.begin(), target.end());
    ExcludeRepeatedNgrams(history, options_.no_repeat_ngram_size, repeats);
  }
  // eos is exempt: in models whose start token is eos, a rule against repeated single tokens would
  // forbid it for good.
  std::erase(repeats, special_.eos);
  return repeats;
}

void BeamSearch::AddBarred(int i, std::vector<TokenId>& excluded) const {
  if (grammar_ == nullptr) return;
  const auto barred = grammar_->Barred(states_[i], options_.max_target_tokens - steps_ - 1);
  std::vector<TokenId> all;
  all.reserve(excluded.size() + barred.size());
  std::set_union(excluded.begin(), excluded.end(), barred.begin(), barred.end(),
                 std::back_inserter(all));
  if (!constraints_.empty() && !InCharacter(i)) {
    for (TokenId token : constraints_.Next(progress_[i], TargetOf(live_[i].tokens))) {
      if (grammar_->IsControl(token) &&
          !std::binary_search(excluded.begin(), excluded.end(), token))
        std::erase(all, token);
    }
  }
  excluded = std::move(all);
}

void BeamSearch::AddWordStarts(std::vector<TokenId>& excluded) const {
  const std::span<const TokenId> starts = length_->word_starts();
  std::vector<TokenId> all;
  all.reserve(excluded.size() + starts.size());
  std::set_union(excluded.begin(), excluded.end(), starts.begin(), starts.end(),
                 std::back_inserter(all));
  excluded = std::move(all);
}

bool BeamSearch::InCharacter(int i) const {
  return grammar_ != nullptr && TokenGrammar::Tail(states_[i]) > 0;
}

TokenGrammar::State BeamSearch::StateOf(const Candidate& candidate) const {
  // A target begins after the silent tokens.
  if (grammar_ == nullptr || silent_after(steps_)) return TokenGrammar::kStart;
  return grammar_->Next(states_[candidate.parent], candidate.token);
}

void BeamSearch::MakeRules() {
  rules_.clear();
  for (int i = 0; i < live(); ++i) rules_.push_back(RulesFor(i));
}

RowNeed BeamSearch::need(int i) const {
  const Rules& rules = rules_[i];
  if (rules.forced != kNoToken) return {.also = rules.forced};
  if (!constraints_.empty()) return {.all = true};  // phrases may begin with any token
  // Inside a character nearly all tokens are excluded.
  if (InCharacter(i) || wanted() == 0 || wanted() > kMaxBest) return {.all = true};
  // Each excluded token may be among the highest.
  const int excluded = static_cast<int>(rules.excluded.size()) - rules.barred;
  return {.best = wanted() + excluded + std::min(rules.barred, kMaxBarredAmongBest),
          .also = rules.penalise_unknown ? special_.unk : kNoToken};
}

int BeamSearch::wanted() const {
  return options_.sampling() ? options_.top_k : 2 * options_.beam_size;
}

bool BeamSearch::suffices(int i, const RowLogits& row) const {
  const Rules& rules = rules_[i];
  if (row.tokens.empty() || rules.forced != kNoToken || rules.barred <= kMaxBarredAmongBest ||
      InCharacter(i))
    return true;
  int allowed = 0, found = 0;
  for (size_t at = 0; at < row.tokens.size() && allowed < wanted(); ++at) {
    if (!(row.logits[at] > std::numeric_limits<float>::lowest())) continue;
    ++found;
    allowed +=
        std::binary_search(rules.excluded.begin(), rules.excluded.end(), row.tokens[at]) ? 0 : 1;
  }
  return allowed >= wanted() || found < need(i).best;  // the vocabulary has no more
}

absl::StatusOr<LogitRow> BeamSearch::MakeRow(int i, const RowLogits& row) const {
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

float BeamSearch::PenaltyOf(TokenId token) const {
  return token == special_.unk ? options_.unknown_penalty : 0;
}

absl::StatusOr<Candidate> BeamSearch::Forced(const LogitRow& row, TokenId token) const {
  if (silent_after(steps_)) return Candidate{.sum = row.sum, .parent = row.parent, .token = token};
  if (const auto logit = row.Logit(token); logit.has_value())
    return row.Extend(token, *logit, PenaltyOf(token));
  if (!row.tokens.empty()) {
    return absl::InternalError(absl::StrCat("a row lacks the logit of token ", token));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "forced token ", token, " is outside the vocabulary of ", row.logits.size(), " tokens"));
}

absl::StatusOr<std::vector<Candidate>> BeamSearch::BestCandidates(
    std::span<const LogitRow> rows) const {
  TopCandidates top(2 * options_.beam_size);
  for (int i = 0; i < live(); ++i) {
    const Rules& rules = rules_[i];
    if (rules.forced != kNoToken) {
      ASSIGN_OR_RETURN(Candidate forced, Forced(rows[i], rules.forced));
      top.Push(forced);
      continue;
    }
    if (rules.penalise_unknown) {
      if (const auto logit = rows[i].Logit(special_.unk); logit.has_value())
        top.Push(rows[i].Extend(special_.unk, *logit, options_.unknown_penalty));
    }
    PushRow(rows[i], rules.excluded, top);
  }
  return top.Take();
}

Constraints::Progress BeamSearch::ProgressOf(const Candidate& candidate) const {
  if (constraints_.empty() || candidate.token == special_.eos || silent_after(steps_))
    return progress_[candidate.parent];
  std::vector<TokenId> tokens = live_[candidate.parent].tokens;
  tokens.push_back(candidate.token);
  return constraints_.After(progress_[candidate.parent], TargetOf(tokens));
}

std::span<const TokenId> BeamSearch::TargetOf(const std::vector<TokenId>& tokens) const {
  return std::span(tokens).subspan(std::min<size_t>(silent_, tokens.size()));
}

absl::StatusOr<std::vector<Candidate>> BeamSearch::ConstrainedCandidates(
    std::span<const LogitRow> rows) const {
  ASSIGN_OR_RETURN(std::vector<Candidate> candidates, BestCandidates(rows));
  for (int i = 0; i < live(); ++i) {
    const Rules& rules = rules_[i];
    if (rules.forced != kNoToken) continue;  // the forced token has no alternatives
    TopCandidates top(1);
    if (rules.penalise_unknown) {
      if (const auto logit = rows[i].Logit(special_.unk); logit.has_value())
        top.Push(rows[i].Extend(special_.unk, *logit, options_.unknown_penalty));
    }
    PushRow(rows[i], rules.excluded, top);
    for (const Candidate& candidate : top.Take()) candidates.push_back(candidate);
    for (TokenId token : constraints_.Next(progress_[i], TargetOf(live_[i].tokens))) {
      if (std::binary_search(rules.excluded.begin(), rules.excluded.end(), token)) continue;
      const auto logit = rows[i].Logit(token);
      if (!logit.has_value() || !std::isfinite(rows[i].Extend(token, *logit).sum)) continue;
      candidates.push_back(rows[i].Extend(token, *logit));
    }
  }
  std::sort(candidates.begin(), candidates.end(), Better);
  const auto same = [](const Candidate& a, const Candidate& b) {
    return a.parent == b.parent && a.token == b.token;
  };
  candidates.erase(std::unique(candidates.begin(), candidates.end(), same), candidates.end());
  std::vector<int> banks;
  for (const Candidate& candidate : candidates)
    banks.push_back(constraints_.Bank(ProgressOf(candidate)));
  return AllocateBeam(std::move(candidates), banks, 2 * options_.beam_size);
}

absl::StatusOr<std::vector<Candidate>> BeamSearch::DrawCandidates(std::span<const LogitRow> rows) {
  if (steps_ == 0) {  // the first step makes one hypothesis per target
    numbers_.resize(options_.beam_size);
    std::iota(numbers_.begin(), numbers_.end(), 0);
  }
  std::vector<Candidate> drawn;
  for (int i = 0; i < numbers_.size(); ++i) {
    const int parent = steps_ == 0 ? 0 : i;
    const Rules& rules = rules_[parent];
    if (rules.forced != kNoToken) {
      ASSIGN_OR_RETURN(Candidate forced, Forced(rows[parent], rules.forced));
      drawn.push_back(forced);
    } else if (const auto token =
                   DrawToken(rows[parent],
                             {.excluded = rules.excluded,
                              .penalised = rules.penalise_unknown ? special_.unk : kNoToken,
                              .penalty = options_.unknown_penalty,
                              .top_k = options_.top_k,
                              .top_p = options_.top_p},
                             UniformDraw(options_.seed.value_or(0), numbers_[i], steps_));
               token.has_value()) {
      drawn.push_back(*token);
    }
    if (drawn.size() != i + 1 || !std::isfinite(drawn.back().sum)) return NothingPossible();
  }
  return drawn;
}

absl::StatusOr<std::vector<Candidate>> BeamSearch::CandidatesOf(std::span<const LogitRow> rows) {
  if (options_.sampling()) return DrawCandidates(rows);
  return constraints_.empty() ? BestCandidates(rows) : ConstrainedCandidates(rows);
}

absl::Status BeamSearch::NothingPossible() const {
  return absl::InternalError(absl::StrCat("no token is possible at target token ", steps_,
                                          ": each is forbidden or has no finite log-probability"));
}

Hypothesis BeamSearch::Extend(const Candidate& candidate) const {
  Hypothesis hypothesis = live_[candidate.parent];
  hypothesis.tokens.push_back(candidate.token);
  hypothesis.token_scores.push_back(candidate.log_probability);
  hypothesis.score = candidate.sum;
  hypothesis.unmet_constraints = constraints_.Unmet(ProgressOf(candidate));
  return hypothesis;
}

void BeamSearch::End(Hypothesis hypothesis) {
  if (options_.normalize_scores) {
    hypothesis.score /=
        std::pow(static_cast<float>(hypothesis.tokens.size()), options_.length_penalty);
  }
  hypothesis.ended_by_limit = steps_ >= options_.max_target_tokens;
  ended_.push_back(std::move(hypothesis));
}

absl::Status BeamSearch::Advance(std::span<const float> logits,
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

absl::Status BeamSearch::Advance(std::span<const RowLogits> rows) {
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
  ASSIGN_OR_RETURN(std::vector<Candidate> candidates, CandidatesOf(checked));

  std::vector<Hypothesis> next;
  std::vector<Constraints::Progress> progress;
  std::vector<TokenGrammar::State> states;
  std::vector<int> numbers, parents;
  std::vector<TokenId> tokens;
  for (int rank = 0; rank < candidates.size(); ++rank) {
    const Candidate& candidate = candidates[rank];
    if (candidate.token == special_.eos) {
      // An eos ranked below the first `beam` candidates is dropped.
      if (rank < options_.beam_size && ended_.size() < options_.beam_size) End(Extend(candidate));
    } else if (next.size() < options_.beam_size) {
      next.push_back(Extend(candidate));
      progress.push_back(ProgressOf(candidate));
      states.push_back(StateOf(candidate));
      numbers.push_back(options_.sampling() ? numbers_[rank] : 0);
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
  progress_ = std::move(progress);
  states_ = std::move(states);
  numbers_ = std::move(numbers);
  parents_ = std::move(parents);
  tokens_ = std::move(tokens);
  MakeRules();
  return absl::OkStatus();
}

void BeamSearch::Follow(std::span<const Candidate> live, std::span<const Candidate> ended) {
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
  progress_.assign(live.size(), {});
  ++steps_;
  finished_ = live.empty();
}

std::vector<Hypothesis> BeamSearch::Results() const {
  std::vector<Hypothesis> results = ended_;
  std::stable_sort(results.begin(), results.end(), Preferred);
  if (results.size() > options_.n_best) results.resize(options_.n_best);
  for (Hypothesis& result : results) {
    DropFirst(silent_, result.tokens);
    DropFirst(silent_, result.token_scores);
  }
  return results;
}

std::vector<TokenId> BeamSearch::StablePrefix() const {
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
