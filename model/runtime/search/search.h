#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/runtime/search/constraints.h"
#include "model/runtime/search/search_options.h"
#include "model/runtime/search/target_length.h"
#include "model/runtime/search/token.h"
#include "model/runtime/search/token_grammar.h"

namespace linnet::model {

struct Hypothesis {
  std::vector<TokenId> tokens;      // eos last, prefix included, without what the model forces
  std::vector<float> token_scores;  // natural log-probabilities, one per token
  float score = 0;
  bool ended_by_limit = false;  // eos was forced by max_target_tokens
  int unmet_constraints = 0;    // constraints that it does not contain
};

struct Candidate;
struct LogitRow;

inline constexpr TokenId kNoToken = -1;

// The part of a row of logits that a search needs: the `best` highest (of equal ones those of lower
// tokens) and the logit of `also`; or all of them.
struct RowNeed {
  int best = 0;
  TokenId also = kNoToken;
  bool all = false;
};

// A row of logits for a search: the logits of `tokens`, in any order, or the whole row if `tokens`
// is empty. It may contain more than RowNeed, and `also` twice.
struct RowLogits {
  std::span<const float> logits;
  std::span<const TokenId> tokens = {};
  float log_normalizer = 0;  // logsumexp(row / temperature) over the whole vocabulary
};

// The search for one sequence's target, in one of three ways.
//
// Beam search, by the rules of fairseq's SequenceGenerator: candidates are the best 2·beam of
// beam × vocabulary by cumulative score; an eos among the first `beam` of them ends a hypothesis,
// one ranked lower is dropped; the best `beam` others stay live; the search ends when `beam`
// hypotheses have ended or the limit is reached, where eos is forced. Greedy search is beam 1.
//
// With constraints (constraints.h) it is fairseq's lexically constrained search: a hypothesis does
// not end before it has met all phrases; the best continuation of each hypothesis and all tokens
// that continue a phrase are additional candidates; and the beam is allocated between banks of
// equal progress. Hypotheses that end at the limit rank by the number of met phrases first.
//
// With a grammar (token_grammar.h) no token follows that it forbids: byte pieces form whole
// characters, and control pieces occur only in a prefix or a phrase. The rules against repeats
// (repeats.h) do not apply inside a character. A best target that is legal without the grammar has
// the same score with it.
//
// With a wished length (target_length.h) a hypothesis does not end before it is long enough, and no
// word begins once it is full. The limits on target tokens still hold.
//
// Sampling: `beam` independent hypotheses draw a token at every step until it is eos (sampling.h).
// Forbidden tokens are not drawn, and eos is forced at the limit.
//
// Scoring: all tokens are given, eos included, and nothing is searched.
//
// Live hypotheses are numbered 0 … live()-1. The caller owns their decoder state: at each step it
// computes one row of logits per hypothesis, calls Advance, and continues hypothesis i from the
// state of parents()[i] with input tokens()[i]. A new search has one live hypothesis, whose input
// is the start token.
//
// Pure: no thread, no clock, no tensor; not thread-safe. Source: Ott et al. 2019 (fairseq),
// sequence_generator.py and search.py.
class BeamSearch {
 public:
  // `prefix` (without eos) is forced as the start of every hypothesis, up to max_target_tokens of
  // it. The rules against repeats never forbid forced tokens and eos, and max_ngram_repeats no
  // token that continues a constraint. `options` have passed CheckOptions; with `constraints` they
  // do not sample. `grammar` and `length` may be null.
  //
  // `silent` tokens are forced before everything else: the decoder reads them as target tokens, but
  // results and stable prefixes leave them out, and the limits on target tokens do not count them.
  // Their log-probability is 0; the length that divides a score, and the rules against repeats,
  // include them, as in Hugging Face's transformers.
  BeamSearch(const SearchOptions& options, const SpecialTokens& special,
             std::vector<TokenId> prefix, Constraints constraints = {},
             std::shared_ptr<const TokenGrammar> grammar = nullptr,
             std::vector<TokenId> silent = {},
             std::shared_ptr<const TargetLength> length = nullptr);
  // Scores `target` (eos last, and nowhere else). Only the options of the score apply: temperature,
  // unknown_penalty, length_penalty, normalize_scores. Given the same rows, the score is
  // bit-identical to that of a search that finds the same tokens.
  static BeamSearch Scoring(const SearchOptions& options, const SpecialTokens& special,
                            std::vector<TokenId> target, std::vector<TokenId> silent = {});

  int live() const { return static_cast<int>(tokens_.size()); }
  std::span<const int> parents() const { return parents_; }
  std::span<const TokenId> tokens() const { return tokens_; }
  int steps() const { return steps_; }
  bool finished() const { return finished_; }
  const SearchOptions& options() const { return options_; }

  // The need of live hypothesis i in the next step. A grammar forbids some hundred tokens, but a
  // trained model ranks hardly any of them high, so the need includes only a few extra logits for
  // them.
  RowNeed need(int i) const;
  // True if a row with the logits of need() has enough tokens that the grammar allows. If not,
  // Advance needs the whole row.
  bool suffices(int i, const RowLogits& row) const;
  // Advances by one step, with one row per live hypothesis that satisfies its need. log p = logit /
  // temperature - normalizer. Each row needs a finite normalizer: a row of NaN is an InternalError,
  // after which the search must not be advanced.
  absl::Status Advance(std::span<const RowLogits> rows);
  // The same with whole rows: `logits` is [live, vocabulary], row-major.
  absl::Status Advance(std::span<const float> logits, std::span<const float> log_normalizers);

  // Applies a step that the device made by the same rules (ops/search/beam_search.h; beam search
  // and scoring, without constraints): the live hypotheses in the order of their numbers, and those
  // that ended, best first. Advance must not be called on such a search.
  void Follow(std::span<const Candidate> live, std::span<const Candidate> ended);
  // The forced next token of every hypothesis after that many steps, or kNoToken.
  TokenId forced_after(int steps) const;
  // True if that token is silent.
  bool silent_after(int steps) const { return steps < silent_; }

  // Best first, at most n_best. Complete once finished().
  std::vector<Hypothesis> Results() const;
  // The longest common prefix of all hypotheses that can still be the best result: the live ones
  // and the best ended one. It never shrinks; when finished it is the best result's tokens (eos
  // included).
  std::vector<TokenId> StablePrefix() const;

 private:
  // Rules for the next token of one live hypothesis: either it is forced, or all but `excluded` are
  // allowed. If unk has a penalty, it is in `excluded` and becomes a separate candidate.
  struct Rules {
    TokenId forced = kNoToken;
    bool penalise_unknown = false;
    std::vector<TokenId> excluded;  // ascending
    int barred = 0;  // number of those that only the grammar or the wished length excludes
  };

  Rules RulesFor(int i) const;
  // Max number of allowed tokens that a step reads from a row; 0: it needs more than the highest.
  int wanted() const;
  std::vector<TokenId> Repeats(int i) const;  // tokens that the rules of repeats.h forbid
  void AddBarred(int i, std::vector<TokenId>& excluded) const;  // tokens that the grammar forbids
  void AddWordStarts(std::vector<TokenId>& excluded) const;
  bool InCharacter(int i) const;
  TokenGrammar::State StateOf(const Candidate& candidate) const;
  void MakeRules();  // for the next step
  absl::StatusOr<LogitRow> MakeRow(int i, const RowLogits& row) const;
  float PenaltyOf(TokenId token) const;
  absl::StatusOr<Candidate> Forced(const LogitRow& row, TokenId token) const;
  absl::StatusOr<std::vector<Candidate>> BestCandidates(std::span<const LogitRow> rows) const;
  // BestCandidates and those that constraints add, after dynamic beam allocation.
  absl::StatusOr<std::vector<Candidate>> ConstrainedCandidates(
      std::span<const LogitRow> rows) const;
  Constraints::Progress ProgressOf(const Candidate& candidate) const;
  // The tokens of a hypothesis without the silent ones.
  std::span<const TokenId> TargetOf(const std::vector<TokenId>& tokens) const;
  // One candidate per sampled target, in the order of their numbers.
  absl::StatusOr<std::vector<Candidate>> DrawCandidates(std::span<const LogitRow> rows);
  absl::StatusOr<std::vector<Candidate>> CandidatesOf(std::span<const LogitRow> rows);
  absl::Status NothingPossible() const;
  Hypothesis Extend(const Candidate& candidate) const;
  void End(Hypothesis hypothesis);

  SearchOptions options_;  // the limits on target tokens include the silent ones
  SpecialTokens special_;
  std::vector<TokenId> forced_;  // the silent tokens, then the prefix or a whole target
  int silent_;                   // number of the first
  Constraints constraints_;
  std::shared_ptr<const TokenGrammar> grammar_;
  std::shared_ptr<const TargetLength> length_;
  int steps_ = 0;
  bool finished_ = false;
  std::vector<Hypothesis> live_;                 // .score is the plain sum while live
  std::vector<Constraints::Progress> progress_;  // per live hypothesis
  std::vector<TokenGrammar::State> states_;      // per live hypothesis, with a grammar
  std::vector<int> numbers_;       // when sampling: number of its target, per live hypothesis
  std::vector<Rules> rules_;       // per live hypothesis, for the next step
  std::vector<Hypothesis> ended_;  // in the order in which they ended
  std::vector<int> parents_;
  std::vector<TokenId> tokens_;
};

}  // namespace linnet::model
