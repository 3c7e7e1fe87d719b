#include "model/runtime/search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/runtime/candidates.h"

namespace linnet::model {
namespace {

constexpr float kMaxLengthPenalty = 10.0f;
// Logits divided by less than this leave the range of float.
constexpr float kMinTemperature = 1e-6f;

absl::Status OutOfRange(const char* option, auto value, auto least, auto most) {
  return absl::InvalidArgumentError(
      absl::StrCat(option, " is ", value, ", it must be between ", least, " and ", most));
}

// Adds the tokens that would complete an n-gram which `history` (the start token, then the target
// so far) already holds.
void AddRepeats(const std::vector<TokenId>& history, int n, std::vector<TokenId>& excluded) {
  if (n <= 0 || history.size() < n) return;
  const auto last = history.end() - (n - 1);  // the n-1 tokens that the next one would follow
  for (auto start = history.begin(); start + (n - 1) != history.end(); ++start) {
    if (std::equal(last, history.end(), start)) excluded.push_back(start[n - 1]);
  }
}

}  // namespace

absl::Status CheckOptions(const SearchOptions& options, const SearchLimits& limits) {
  if (options.beam_size < 1 || options.beam_size > limits.max_beam_size) {
    return OutOfRange("beam_size", options.beam_size, 1, limits.max_beam_size);
  }
  if (options.n_best < 1 || options.n_best > options.beam_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("n_best is ", options.n_best,
                     ", it must be between 1 and beam_size, which is ", options.beam_size));
  }
  if (!(options.length_penalty >= 0 && options.length_penalty <= kMaxLengthPenalty)) {
    return OutOfRange("length_penalty", options.length_penalty, 0, kMaxLengthPenalty);
  }
  if (options.max_target_tokens < 0 || options.max_target_tokens > limits.max_target_tokens) {
    return OutOfRange("max_target_tokens", options.max_target_tokens, 0, limits.max_target_tokens);
  }
  if (options.min_target_tokens < 0 || options.min_target_tokens > options.max_target_tokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        "min_target_tokens is ", options.min_target_tokens,
        ", it must be between 0 and max_target_tokens, which is ", options.max_target_tokens));
  }
  if (!std::isfinite(options.unknown_penalty)) {
    return absl::InvalidArgumentError(absl::StrCat("unknown_penalty is ", options.unknown_penalty,
                                                   ", it must be a finite number"));
  }
  if (options.no_repeat_ngram_size < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("no_repeat_ngram_size is ", options.no_repeat_ngram_size,
                     ", it must be at least 0, which forbids nothing"));
  }
  if (!(options.temperature >= kMinTemperature && std::isfinite(options.temperature))) {
    return absl::InvalidArgumentError(absl::StrCat("temperature is ", options.temperature,
                                                   ", it must be a finite number of at least ",
                                                   kMinTemperature));
  }
  return absl::OkStatus();
}

// Either one token is forced, or all but `excluded` are allowed. `penalised` is unk, where it has a
// penalty: it competes with a sum of its own and stands among `excluded`.
struct BeamSearch::Row {
  static constexpr TokenId kNone = -1;

  TokenId forced = kNone;
  bool penalise_unknown = false;
  std::vector<TokenId> excluded;  // ascending
};

BeamSearch::BeamSearch(const SearchOptions& options, const SpecialTokens& special,
                       std::vector<TokenId> prefix)
    : options_(options),
      special_(special),
      prefix_(std::move(prefix)),
      live_(1),
      parents_({0}),
      tokens_({special.start}) {}

BeamSearch::Row BeamSearch::RulesFor(int hypothesis) const {
  Row row;
  if (steps_ >= options_.max_target_tokens) {
    row.forced = special_.eos;
    return row;
  }
  if (steps_ < prefix_.size()) {
    row.forced = prefix_[steps_];
    return row;
  }
  if (options_.no_repeat_ngram_size > 0) {
    std::vector<TokenId> history = {special_.start};
    const std::vector<TokenId>& target = live_[hypothesis].tokens;
    history.insert(history.end(), target.begin(), target.end());
    AddRepeats(history, options_.no_repeat_ngram_size, row.excluded);
    // eos, where it starts every history, would never end one if single tokens may not repeat.
    std::erase(row.excluded, special_.eos);
  }
  row.excluded.push_back(special_.pad);
  if (steps_ < options_.min_target_tokens) row.excluded.push_back(special_.eos);
  std::sort(row.excluded.begin(), row.excluded.end());
  if (options_.unknown_penalty != 0 &&
      !std::binary_search(row.excluded.begin(), row.excluded.end(), special_.unk)) {
    row.penalise_unknown = true;
    row.excluded.insert(std::lower_bound(row.excluded.begin(), row.excluded.end(), special_.unk),
                        special_.unk);
  }
  return row;
}

absl::StatusOr<std::vector<Candidate>> BeamSearch::BestCandidates(
    std::span<const float> logits, std::span<const float> log_normalizers) const {
  const size_t vocabulary = logits.size() / live();
  TopCandidates top(2 * options_.beam_size);
  for (int i = 0; i < live(); ++i) {
    if (!std::isfinite(log_normalizers[i])) {
      return absl::InternalError(absl::StrCat("the model gave no probabilities at target token ",
                                              steps_, ": the normalizer of hypothesis ", i, " is ",
                                              log_normalizers[i]));
    }
    const LogitRow row = {.logits = logits.subspan(i * vocabulary, vocabulary),
                          .temperature = options_.temperature,
                          .log_normalizer = log_normalizers[i],
                          .sum = live_[i].score,
                          .parent = i};
    const auto push = [&](TokenId token) {
      float log_probability = row.LogProbability(token);
      if (token == special_.unk) log_probability -= options_.unknown_penalty;
      top.Push({row.sum + log_probability, log_probability, i, token});
    };
    const Row rules = RulesFor(i);
    if (rules.forced != Row::kNone) {
      push(rules.forced);
      continue;
    }
    if (rules.penalise_unknown) push(special_.unk);
    PushRow(row, rules.excluded, top);
  }
  return top.Take();
}

Hypothesis BeamSearch::Extend(const Candidate& candidate) const {
  Hypothesis hypothesis = live_[candidate.parent];
  hypothesis.tokens.push_back(candidate.token);
  hypothesis.token_scores.push_back(candidate.log_probability);
  hypothesis.score = candidate.sum;
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
  if (finished_) return absl::InternalError("a search that has finished was advanced");
  const TokenId largest =
      std::max({special_.bos, special_.pad, special_.eos, special_.unk, special_.start});
  if (log_normalizers.size() != live() || logits.size() % live() != 0 ||
      logits.size() / live() <= largest) {
    return absl::InternalError(absl::StrCat(logits.size(), " logits and ", log_normalizers.size(),
                                            " normalizers do not make rows for ", live(),
                                            " hypotheses"));
  }
  if (steps_ < prefix_.size() &&
      (prefix_[steps_] < 0 || prefix_[steps_] >= logits.size() / live())) {
    return absl::InvalidArgumentError(absl::StrCat("prefix token ", prefix_[steps_],
                                                   " is outside the vocabulary of ",
                                                   logits.size() / live(), " tokens"));
  }
  absl::StatusOr<std::vector<Candidate>> candidates = BestCandidates(logits, log_normalizers);
  if (!candidates.ok()) return candidates.status();

  std::vector<Hypothesis> next;
  std::vector<int> parents;
  std::vector<TokenId> tokens;
  for (int rank = 0; rank < candidates->size(); ++rank) {
    const Candidate& candidate = (*candidates)[rank];
    if (candidate.token == special_.eos) {
      // Below the first `beam` an end is dropped: it neither counts nor lives.
      if (rank < options_.beam_size && ended_.size() < options_.beam_size) End(Extend(candidate));
    } else if (next.size() < options_.beam_size) {
      next.push_back(Extend(candidate));
      parents.push_back(candidate.parent);
      tokens.push_back(candidate.token);
    }
  }
  if (next.empty() && ended_.empty()) {
    return absl::InternalError(
        absl::StrCat("no token is possible at target token ", steps_,
                     ": each is forbidden or has no finite log-probability"));
  }
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
  return absl::OkStatus();
}

std::vector<Hypothesis> BeamSearch::Results() const {
  std::vector<Hypothesis> results = ended_;
  std::stable_sort(results.begin(), results.end(),
                   [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  if (results.size() > options_.n_best) results.resize(options_.n_best);
  return results;
}

std::vector<TokenId> BeamSearch::StablePrefix() const {
  const auto best =
      std::max_element(ended_.begin(), ended_.end(),
                       [](const Hypothesis& a, const Hypothesis& b) { return a.score < b.score; });
  std::vector<TokenId> common = best != ended_.end() ? best->tokens : live_.front().tokens;
  for (const Hypothesis& hypothesis : live_) {
    const auto difference = std::mismatch(common.begin(), common.end(), hypothesis.tokens.begin(),
                                          hypothesis.tokens.end());
    common.erase(difference.first, common.end());
  }
  return common;
}

}  // namespace linnet::model
