#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/runtime/search/token.h"

namespace linnet::model {

// Phrases that a target must contain, in any order, and the progress of a hypothesis through them.
//
// A phrase is met when the hypothesis contains its tokens consecutively. Equal phrases are met one
// after the other: a token counts for one phrase only, the longest that it may belong to, so that a
// phrase inside another that was begun and not ended is not met. Immutable, so thread-safe. Source:
// Post and Vilar 2018, Fast Lexically Constrained Decoding with Dynamic Beam Allocation (arXiv
// 1804.06609), sections 3 and 4; Hu et al. 2019 for phrases with a common prefix.
class Constraints {
 public:
  static constexpr int kMaxPhrases = 32;

  // Progress of a hypothesis: the phrases that are met, and the number of its last tokens that are
  // the start of another phrase.
  struct Progress {
    uint32_t met = 0;
    int begun = 0;
    bool just_met = false;  // with its last token
  };

  Constraints() = default;
  // At most kMaxPhrases, none empty. `continuations`, which may be null, are the tokens that
  // continue a word: none may follow a phrase that was just met, so that a phrase ends at the end
  // of a word. Shared ownership, since a stalled engine may outlive its model.
  explicit Constraints(std::vector<std::vector<TokenId>> phrases,
                       std::shared_ptr<const std::vector<TokenId>> continuations = nullptr);

  bool empty() const { return phrases_.empty(); }
  int Unmet(const Progress& progress) const;
  // Number of phrase tokens in the hypothesis: all tokens of met phrases, and those of begun ones.
  int Bank(const Progress& progress) const;
  // Progress after `tokens`, the last of which is new; `progress` is that before it.
  Progress After(const Progress& progress, std::span<const TokenId> tokens) const;
  // Numbers of the phrases that a target, without eos, does not contain.
  std::vector<int> UnmetBy(std::span<const TokenId> target) const;
  // Tokens that must not come next.
  std::span<const TokenId> Forbidden(const Progress& progress) const;
  // The tokens that would begin or continue a phrase after `tokens`, ascending.
  std::vector<TokenId> Next(const Progress& progress, std::span<const TokenId> tokens) const;

 private:
  bool met(const Progress& progress, size_t phrase) const { return progress.met >> phrase & 1; }

  std::vector<std::vector<TokenId>> phrases_;
  std::shared_ptr<const std::vector<TokenId>> continuations_;
};

}  // namespace linnet::model
