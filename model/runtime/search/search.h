#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/runtime/search/candidates.h"
#include "model/runtime/search/live_hypotheses.h"
#include "model/runtime/search/row.h"
#include "model/runtime/search/row_edit.h"
#include "model/runtime/search/rule.h"
#include "model/runtime/search/search_options.h"
#include "model/runtime/search/token.h"

namespace linnet::model {

struct Hypothesis {
  std::vector<TokenId> tokens;      // eos last, prefix included, without what the model forces
  std::vector<float> token_scores;  // natural log-probabilities, one per token
  float score = 0;
  bool ended_by_limit = false;  // eos was forced by max_target_tokens
  int unmet_constraints = 0;    // constraints that it does not contain
};

// The search for one sequence's target. It keeps the hypotheses and applies the rules (rules.h); a
// derived class chooses the tokens: BeamSearch, Sampler, or Scorer, which gets them.
//
// Live hypotheses are numbered 0 … live()-1. The caller owns their decoder state: at each step it
// computes one row of logits per hypothesis, calls Advance, and continues hypothesis i from the
// state of parents()[i] with input tokens()[i]. A new search has one live hypothesis, whose input
// is the start token.
//
// Pure: no thread, no clock, no tensor; not thread-safe. Source: Ott et al. 2019 (fairseq),
// sequence_generator.py and search.py.
class Search {
 public:
  virtual ~Search() = default;
  Search(Search&&) = default;
  Search& operator=(Search&&) = default;

  int live() const { return static_cast<int>(tokens_.size()); }
  std::span<const int> parents() const { return parents_; }
  std::span<const TokenId> tokens() const { return tokens_; }
  int steps() const { return steps_; }
  bool finished() const { return finished_; }
  // The next tokens, as far as they are known: the rest of the silent tokens and of a prefix or a
  // target. While there are any, one hypothesis is live. So a caller may compute the rows of these
  // steps at once, with the input tokens()[0] and then these tokens, and call Advance for each.
  std::span<const TokenId> known() const {
    return std::span(known_).subspan(std::min<size_t>(steps_, known_.size()));
  }
  const SearchOptions& options() const { return options_; }

  // The need of live hypothesis i in the next step.
  RowNeed need(int i) const { return edits_[i].Need(wanted()); }
  // True if a row with the logits of need() has enough tokens that the rules allow. If not, Advance
  // needs the whole row.
  bool suffices(int i, const RowLogits& row) const { return edits_[i].Suffices(row, wanted()); }
  // Advances by one step, with one row per live hypothesis that satisfies its need. log p = logit /
  // temperature - normalizer. Each row needs a finite normalizer: a row of NaN is an InternalError,
  // after which the search must not be advanced.
  absl::Status Advance(std::span<const RowLogits> rows);
  // The same with whole rows: `logits` is [live, vocabulary], row-major.
  absl::Status Advance(std::span<const float> logits, std::span<const float> log_normalizers);

  // True if a device can make the steps (ops/search/beam_search.h): beam search and scoring, where
  // all rules have the form of StepRules.
  bool has_device_form() const { return has_device_form_; }
  // The rules of the step after so many tokens. Requires has_device_form().
  StepRules Describe(int position) const;
  // Applies a step that the device made by the same rules: the live hypotheses in the order of
  // their numbers, and those that ended, best first. Advance must not be called on such a search.
  void Follow(std::span<const Candidate> live, std::span<const Candidate> ended);

  // Best first, at most n_best. Complete once finished().
  std::vector<Hypothesis> Results() const;
  // The longest common prefix of all hypotheses that can still be the best result: the live ones
  // and the best ended one. It never shrinks; when finished it is the best result's tokens (eos
  // included).
  std::vector<TokenId> StablePrefix() const;

 protected:
  // `options` are those of `spec`, or what the search makes of them.
  Search(const SearchSpec& spec, const SearchOptions& options, bool device_can_choose);

  // Sets `candidates`, which is empty, to the continuations of the live hypotheses, best first.
  virtual absl::Status Choose(std::span<const LogitRow> rows,
                              std::vector<Candidate>& candidates) = 0;
  // Max number of allowed tokens that a step reads from a row; 0: it needs more than the highest.
  virtual int wanted() const = 0;
  // Number of constraints that a candidate does not contain.
  virtual int Unmet(const Candidate& /*candidate*/) { return 0; }

  const RowEdit& edit(int i) const { return edits_[i]; }
  // The candidate for the token that the rules force.
  absl::StatusOr<Candidate> Forced(const LogitRow& row) const;
  absl::Status NothingPossible() const;
  // Valid until the next call.
  Continuation ContinuationBy(const Candidate& candidate);
  std::span<const std::unique_ptr<Rule>> rules() const { return rules_; }

 private:
  absl::StatusOr<LogitRow> MakeRow(int i, const RowLogits& row) const;
  void ApplyRules();  // for the next step
  void End(const Candidate& candidate);
  void Continue();  // with next_
  // The tokens of a hypothesis without the silent ones.
  std::span<const TokenId> TargetWithin(std::span<const TokenId> tokens) const;

  SearchOptions options_;  // the limits on target tokens include the silent ones
  SpecialTokens special_;
  int silent_;                  // number of the silent tokens
  std::vector<TokenId> known_;  // that the target begins with, silent ones first
  std::vector<std::unique_ptr<Rule>> rules_;
  bool has_device_form_;
  int steps_ = 0;
  bool finished_ = false;
  LiveHypotheses live_;
  std::vector<RowEdit> edits_;     // per live hypothesis, for the next step; may have more entries
  std::vector<Hypothesis> ended_;  // in the order in which they ended
  std::vector<int> parents_;
  std::vector<TokenId> tokens_;
  // Of one step; keep their memory.
  std::vector<LogitRow> rows_;
  std::vector<Candidate> candidates_, next_;
  std::vector<Continuation> continuations_;
};

// The search that the spec asks for: a Scorer, a Sampler, or a BeamSearch.
std::unique_ptr<Search> NewSearch(const SearchSpec& spec);

}  // namespace linnet::model
