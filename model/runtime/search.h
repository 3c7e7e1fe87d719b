#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace linnet::model {

using TokenId = int32_t;

// The tokens that a search treats in their own way. Values as fairseq's dictionaries have them.
struct SpecialTokens {
  TokenId bos = 0;  // may be eos: a model without one
  TokenId pad = 1;  // never comes out
  TokenId eos = 2;
  TokenId unk = 3;
  TokenId start = eos;  // first input of the decoder; may be any token, Marian has pad
};

// Options of one sequence's search, every one set: the bundle's defaults with the request's options
// on top. Names are those of linnet.v1.DecodingOptions.
struct SearchOptions {
  int beam_size = 5;  // 1 is greedy search
  float length_penalty =
      1.0f;  // score = sum of log-probabilities / length^length_penalty, eos counted
  int min_target_tokens = 1;    // eos not counted
  int max_target_tokens = 200;  // eos not counted; eos is forced there
  float unknown_penalty = 0.0f;
  int no_repeat_ngram_size = 0;  // 0 forbids nothing
  int n_best = 1;
  bool normalize_scores = true;
  float temperature = 1.0f;
};

// What a search may ask for: of the model, and of the engine it runs in.
struct SearchLimits {
  int max_beam_size = 32;
  int max_target_tokens = 200;
  int max_source_tokens = 512;
};

// InvalidArgumentError naming the option, its value and its limit.
absl::Status CheckOptions(const SearchOptions& options, const SearchLimits& limits);

struct Hypothesis {
  std::vector<TokenId> tokens;      // eos last, prefix included
  std::vector<float> token_scores;  // natural log-probabilities, one per token
  float score = 0;
  bool ended_by_limit = false;  // eos was forced by max_target_tokens
};

struct Candidate;

// Beam search of one sequence by the rules of fairseq's SequenceGenerator: candidates are the best
// 2·beam of beam × vocabulary by cumulative score; an eos among the first `beam` of them ends a
// hypothesis, one ranked lower is dropped; the best `beam` others live on; the search ends when
// `beam` hypotheses have ended or the limit is reached, where eos is forced. Greedy search is
// beam 1.
//
// Hypotheses that live are numbered 0 … live()-1, and the caller owns their decoder state: at each
// step it computes a row of logits for each of them, calls Advance, and lets hypothesis i go on
// from the state of parents()[i] with input tokens()[i]. A new search has one live hypothesis,
// whose input is the start token.
//
// Pure: no thread, no clock, no tensor. Source: Ott et al. 2019 (fairseq), sequence_generator.py
// and search.py.
class BeamSearch {
 public:
  // `prefix` (without eos) is forced as the start of every hypothesis, up to max_target_tokens of
  // it; what is forced is not forbidden by no_repeat_ngram_size, and neither is eos ever. `options`
  // have passed CheckOptions.
  BeamSearch(const SearchOptions& options, const SpecialTokens& special,
             std::vector<TokenId> prefix);

  int live() const { return static_cast<int>(tokens_.size()); }
  std::span<const int> parents() const { return parents_; }
  std::span<const TokenId> tokens() const { return tokens_; }
  int steps() const { return steps_; }
  bool finished() const { return finished_; }

  // `logits` is [live, vocabulary], row-major; `log_normalizers` holds logsumexp(row / temperature)
  // for each row, so that log p = logit / temperature - normalizer. At least one of V tokens must
  // be finite in each row: a row of NaN is an InternalError, after which the search may not be
  // advanced.
  absl::Status Advance(std::span<const float> logits, std::span<const float> log_normalizers);

  // Best first, at most n_best. Complete once finished().
  std::vector<Hypothesis> Results() const;
  // The longest token sequence that every hypothesis that can still be the best result starts with:
  // those that live and the best of the ended. It never shrinks, and it is the best result's tokens
  // (eos included) when finished.
  std::vector<TokenId> StablePrefix() const;

 private:
  struct Row;  // what the rules say of one live hypothesis's next token

  Row RulesFor(int hypothesis) const;
  absl::StatusOr<std::vector<Candidate>> BestCandidates(
      std::span<const float> logits, std::span<const float> log_normalizers) const;
  Hypothesis Extend(const Candidate& candidate) const;
  void End(Hypothesis hypothesis);

  SearchOptions options_;
  SpecialTokens special_;
  std::vector<TokenId> prefix_;
  int steps_ = 0;
  bool finished_ = false;
  std::vector<Hypothesis> live_;   // .score is the plain sum while it lives
  std::vector<Hypothesis> ended_;  // in the order in which they ended
  std::vector<int> parents_;
  std::vector<TokenId> tokens_;
};

}  // namespace linnet::model
