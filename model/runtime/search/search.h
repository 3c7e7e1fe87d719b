#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/runtime/search/constraints.h"
#include "model/runtime/search/search_options.h"
#include "model/runtime/search/token.h"
#include "model/runtime/search/token_grammar.h"

namespace linnet::model {

struct Hypothesis {
  std::vector<TokenId> tokens;      // eos last, prefix included
  std::vector<float> token_scores;  // natural log-probabilities, one per token
  float score = 0;
  bool ended_by_limit = false;  // eos was forced by max_target_tokens
  int unmet_constraints = 0;    // phrases that were asked for and are not in it
};

struct Candidate;
struct LogitRow;

inline constexpr TokenId kNoToken = -1;

// What a search must know of one row of logits: its `best` highest (of equal ones those of lower
// tokens), and the logit of `also`. Or all of them.
struct RowNeed {
  int best = 0;
  TokenId also = kNoToken;
  bool all = false;
};

// What it is told: the logits of `tokens`, in any order, or without tokens the whole row in theirs.
// More than was asked for does no harm, and `also` may be there twice.
struct RowLogits {
  std::span<const float> logits;
  std::span<const TokenId> tokens = {};
  float log_normalizer = 0;  // logsumexp(row / temperature) over the whole vocabulary
};

// The search for one sequence's target, in one of three ways.
//
// Beam search, by the rules of fairseq's SequenceGenerator: candidates are the best 2·beam of
// beam × vocabulary by cumulative score; an eos among the first `beam` of them ends a hypothesis,
// one ranked lower is dropped; the best `beam` others live on; the search ends when `beam`
// hypotheses have ended or the limit is reached, where eos is forced. Greedy search is beam 1.
//
// With constraints (constraints.h), fairseq's lexically constrained search: a hypothesis does not
// end before it has met all of them, the best continuation of each hypothesis and whatever takes it
// further with a phrase are candidates too, and the places are shared out between candidates that
// have got equally far. What had to end at the limit with phrases unmet is behind all that has met
// more of them.
//
// With a grammar (token_grammar.h) no token follows that it bars: of the byte pieces whole
// characters come, and control pieces only where a prefix or a phrase of the constraints has them.
// no_repeat_ngram_size does not bind in the middle of a character. Where the best target is legal
// anyway, it is found with the same score.
//
// Sampling: `beam` hypotheses that know nothing of each other each draw a token at every step until
// it is eos (sampling.h). What the rules forbid is not drawn, and eos is forced at the limit.
//
// Scoring: every token is given, eos included, and nothing is searched.
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
  // have passed CheckOptions; with `constraints` they do not sample. `grammar` may be null.
  BeamSearch(const SearchOptions& options, const SpecialTokens& special,
             std::vector<TokenId> prefix, Constraints constraints = {},
             std::shared_ptr<const TokenGrammar> grammar = nullptr);
  // Scores `target` (eos last, and nowhere else). Of the options only those of the score count:
  // temperature, unknown_penalty, length_penalty, normalize_scores. The result is bit for bit what
  // a search with them finds of the same tokens, given the same rows.
  static BeamSearch Scoring(const SearchOptions& options, const SpecialTokens& special,
                            std::vector<TokenId> target);

  int live() const { return static_cast<int>(tokens_.size()); }
  std::span<const int> parents() const { return parents_; }
  std::span<const TokenId> tokens() const { return tokens_; }
  int steps() const { return steps_; }
  bool finished() const { return finished_; }

  // Of the row of live hypothesis i in the step to come. A grammar bars a hundred tokens, of which
  // a trained model ranks hardly any high, so it is asked for only a few more than are wanted.
  RowNeed need(int i) const;
  // Whether a row that has what need() asked for holds enough tokens that the grammar allows. Where
  // it does not, Advance takes the whole row.
  bool suffices(int i, const RowLogits& row) const;
  // A step: a row for each live hypothesis, which holds what it needs. log p = logit / temperature
  // - normalizer. At least one token must be finite in each row: a row of NaN is an InternalError,
  // after which the search may not be advanced.
  absl::Status Advance(std::span<const RowLogits> rows);
  // The same with whole rows: `logits` is [live, vocabulary], row-major.
  absl::Status Advance(std::span<const float> logits, std::span<const float> log_normalizers);

  // A step that was made elsewhere by the same rules: beside the model, by ops/beam_search.h, of
  // beam searches and given targets without constraints. Says which hypotheses live on, in the
  // order of their numbers, and which ended, best first. A search that follows is never advanced.
  void Follow(std::span<const Candidate> live, std::span<const Candidate> ended);
  // What comes next in every hypothesis after that many steps, or kNoToken if it is not forced.
  TokenId forced_after(int steps) const;

  // Best first, at most n_best. Complete once finished().
  std::vector<Hypothesis> Results() const;
  // The longest token sequence that every hypothesis that can still be the best result starts with:
  // those that live and the best of the ended. It never shrinks, and it is the best result's tokens
  // (eos included) when finished.
  std::vector<TokenId> StablePrefix() const;

 private:
  // What the rules say of one live hypothesis's next token: either it is forced, or all but
  // `excluded` are allowed. Where unk has a penalty it competes with a sum of its own and stands
  // among `excluded`.
  struct Rules {
    TokenId forced = kNoToken;
    bool penalise_unknown = false;
    std::vector<TokenId> excluded;  // ascending
    int barred = 0;                 // of them, by the grammar alone
  };

  Rules RulesFor(int i) const;
  // Allowed tokens that a step takes from a row at most; 0: it takes others than the highest.
  int wanted() const;
  void AddBarred(int i, std::vector<TokenId>& excluded) const;  // by the grammar
  bool InCharacter(int i) const;
  TokenGrammar::State StateOf(const Candidate& candidate) const;
  void MakeRules();  // of the step to come
  absl::StatusOr<LogitRow> MakeRow(int i, const RowLogits& row) const;
  float PenaltyOf(TokenId token) const;
  absl::StatusOr<Candidate> Forced(const LogitRow& row, TokenId token) const;
  absl::StatusOr<std::vector<Candidate>> BestCandidates(std::span<const LogitRow> rows) const;
  // BestCandidates, those that constraints add, and all of them shared out.
  absl::StatusOr<std::vector<Candidate>> ConstrainedCandidates(
      std::span<const LogitRow> rows) const;
  Constraints::Progress ProgressOf(const Candidate& candidate) const;
  // One for each of the targets that are drawn, in the order of their numbers.
  absl::StatusOr<std::vector<Candidate>> DrawCandidates(std::span<const LogitRow> rows);
  absl::StatusOr<std::vector<Candidate>> CandidatesOf(std::span<const LogitRow> rows);
  absl::Status NothingPossible() const;
  Hypothesis Extend(const Candidate& candidate) const;
  void End(Hypothesis hypothesis);

  SearchOptions options_;
  SpecialTokens special_;
  std::vector<TokenId> forced_;  // the prefix, or a whole target
  Constraints constraints_;
  std::shared_ptr<const TokenGrammar> grammar_;
  int steps_ = 0;
  bool finished_ = false;
  std::vector<Hypothesis> live_;                 // .score is the plain sum while it lives
  std::vector<Constraints::Progress> progress_;  // of each
  std::vector<TokenGrammar::State> states_;      // of each, where there is a grammar
  std::vector<int> numbers_;       // when sampling: which of the drawn targets each of them is
  std::vector<Rules> rules_;       // of each, in the step to come
  std::vector<Hypothesis> ended_;  // in the order in which they ended
  std::vector<int> parents_;
  std::vector<TokenId> tokens_;
};

}  // namespace linnet::model
