#pragma once

#include <optional>
#include <span>
#include <vector>

#include "model/runtime/search/candidates.h"
#include "model/runtime/search/row.h"
#include "model/runtime/search/token.h"

namespace linnet::model {

// What the rules of a search say about the next token of one hypothesis. Rules add to it, then the
// search calls Finish and ranks the row. The search owns one per live hypothesis and uses its
// memory again in the next step.
class RowEdit {
 public:
  // For rules, in the order of rules.h.

  // The token comes next, whatever other rules forbid. A silent token has the log-probability 0.
  void Force(TokenId token, bool silent);
  void Forbid(TokenId token) { forbidden_.push_back(token); }
  void Forbid(std::span<const TokenId> tokens);  // in any order
  // Forbids `tokens`, ascending, of which a trained model ranks hardly any high: a search then asks
  // for a few more logits only, not for one more per token. They must outlive the edit.
  void ForbidUnlikely(std::span<const TokenId> tokens) { unlikely_.push_back(tokens); }
  // Forbids all but `tokens`, ascending, which must outlive the edit. Not for a Sampler.
  void AllowOnly(std::span<const TokenId> tokens);
  // Lets the token come next although it is in a list of ForbidUnlikely.
  void Exempt(TokenId token) { exempt_.push_back(token); }
  // Changes the score of a token unless a rule forbids it. Several changes of a token count
  // together.
  void Adjust(const Adjustment& adjustment) { adjusted_.push_back(adjustment); }
  // Makes the tokens candidates even if they are not among the best.
  void Offer(std::span<const TokenId> tokens);
  std::span<const TokenId> offered() const { return offered_; }
  // Inside a multi-token character, where only its own bytes may come next.
  void StayInCharacter() { in_character_ = needs_all_ = true; }
  bool in_character() const { return in_character_; }
  void NeedWholeRow() { needs_all_ = true; }
  // The logit of one token is needed even if it is not among the highest.
  void NeedLogit(TokenId token);

  // For searches.

  void Clear();
  void Finish();
  TokenId forced() const { return forced_; }
  bool silent() const { return silent_; }
  // The tokens that the ranking of a row leaves out, ascending: the forbidden ones, and those with
  // another score, which are candidates of their own; not those that AllowOnly forbids. The list is
  // made when it is asked for.
  std::span<const TokenId> set_aside() const;
  bool IsSetAside(TokenId token) const;
  std::span<const Adjustment> adjusted() const { return adjusted_; }
  // Of AllowOnly; nullopt: all.
  std::optional<std::span<const TokenId>> allowed() const { return allowed_; }
  bool IsForbidden(TokenId token) const;
  // The candidate for a token that is not forbidden; nullopt if the row lacks its logit.
  std::optional<Candidate> CandidateFor(const LogitRow& row, TokenId token) const;
  // What a step needs of a row to choose among `wanted` tokens that are not forbidden; 0: all.
  RowNeed Need(int wanted) const;
  // True if a row with the logits of Need(wanted) has enough tokens that are not forbidden. If not,
  // the search needs the whole row.
  bool Suffices(const RowLogits& row, int wanted) const;

 private:
  void JoinAdjustments();
  bool IsUnlikely(TokenId token) const;  // and not exempt
  bool IsAllowed(TokenId token) const;
  int CountUnlikely() const;
  const Adjustment* FindAdjustment(TokenId token) const;

  TokenId forced_ = kNoToken;
  bool silent_ = false, in_character_ = false, needs_all_ = false;
  TokenId also_ = kNoToken;
  std::vector<TokenId> forbidden_, exempt_, offered_;
  std::vector<std::span<const TokenId>> unlikely_;
  std::optional<std::span<const TokenId>> allowed_;
  std::vector<Adjustment> adjusted_;  // ascending by token after Finish
  int unlikely_count_ = 0;  // tokens that are set aside because of unlikely_ only, or "too many"
  mutable std::vector<TokenId> set_aside_;
  mutable bool has_set_aside_ = false;
};

}  // namespace linnet::model
