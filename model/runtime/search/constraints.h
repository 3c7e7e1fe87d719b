#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/runtime/search/token.h"

namespace linnet::model {

// Phrases that a target must contain, in any order, and the progress of a hypothesis through them.
//
// They are read as a lexer reads: a phrase begins with the first token that may begin one, grows
// while any phrase goes on, and when it breaks off, the longest whole phrase that it starts with is
// met, and reading goes on behind that. So a token counts for one phrase only, and equal phrases
// are met one after the other. Immutable, so thread-safe. Source: Post and Vilar 2018, Fast
// Lexically Constrained Decoding with Dynamic Beam Allocation (arXiv 1804.06609), sections 3 and 4;
// Hu et al. 2019 for phrases with a common prefix.
class Constraints {
 public:
  static constexpr int kMaxPhrases = 32;

  // Progress of a hypothesis: the phrases that are met, the number of its last tokens that are the
  // start of another, and the longest phrase among these, met unless a longer one ends.
  struct Progress {
    static constexpr int kNone = -1;

    uint32_t met = 0;
    int begun = 0;
    int contained = kNone;
  };

  Constraints() = default;
  // At most kMaxPhrases, none empty. `continuations`, ascending, which may be null, are the tokens
  // that continue a word: a phrase that one of them follows is not met, so that a phrase ends at
  // the end of a word. Shared ownership, since a stalled engine may outlive its model.
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
  // Tokens that must not come after `tokens`, ascending: those that continue the last word of a
  // phrase which just ended, unless they continue a longer one.
  std::vector<TokenId> Forbidden(const Progress& progress, std::span<const TokenId> tokens) const;
  // The tokens that would begin or continue a phrase after `tokens`, ascending.
  std::vector<TokenId> Next(const Progress& progress, std::span<const TokenId> tokens) const;

 private:
  bool Continues(TokenId token) const;
  // Numbers of the unmet phrases that start with `tokens`.
  std::vector<int> Starting(uint32_t met, std::span<const TokenId> tokens) const;
  // The longest unmet phrase, or kNone, that the first `begun` of `tokens` start with, and that no
  // token follows which continues its last word.
  int Contained(uint32_t met, std::span<const TokenId> tokens, int begun) const;

  std::vector<std::vector<TokenId>> phrases_;
  std::shared_ptr<const std::vector<TokenId>> continuations_;
};

}  // namespace linnet::model
