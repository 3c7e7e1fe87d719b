#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/runtime/search/token.h"

namespace linnet::model {

// Phrases that a target is to contain, in any order, and how far a hypothesis is with them.
//
// A phrase is met when the hypothesis has said its tokens one behind the other. Phrases that say
// the same are met one after the other, and a token counts for one phrase alone. Source: Post and
// Vilar 2018, Fast Lexically Constrained Decoding with Dynamic Beam Allocation (arXiv 1804.06609),
// sections 3 and 4; Hu et al. 2019 for phrases that begin alike.
class Constraints {
 public:
  static constexpr int kMaxPhrases = 32;

  // Of a hypothesis: which phrases are met, and with how many of its last tokens others begin.
  struct Progress {
    uint32_t met = 0;
    int begun = 0;
    bool just_met = false;  // by its last token
  };

  Constraints() = default;
  // At most kMaxPhrases, none empty. `continuations`, which may be null, are the tokens that go on
  // with a word: none may follow a phrase that was just met, so that it ends where a word does.
  // They are shared with whoever made them, since an engine that is stuck may outlive its model.
  explicit Constraints(std::vector<std::vector<TokenId>> phrases,
                       std::shared_ptr<const std::vector<TokenId>> continuations = nullptr);

  bool empty() const { return phrases_.empty(); }
  int Unmet(const Progress& progress) const;
  // Tokens of phrases that were said: all of those that are met, and what others begin with.
  int Bank(const Progress& progress) const;
  // After `tokens`, the last of which is new: before it, it was `progress`.
  Progress After(const Progress& progress, std::span<const TokenId> tokens) const;
  // Numbers of the phrases that a target, without its end token, does not meet.
  std::vector<int> UnmetBy(std::span<const TokenId> target) const;
  // What may not come next.
  std::span<const TokenId> Forbidden(const Progress& progress) const;
  // The tokens, ascending, after which one of these tokens has met a phrase or ends with the
  // beginning of one.
  std::vector<TokenId> Next(const Progress& progress, std::span<const TokenId> tokens) const;

 private:
  bool met(const Progress& progress, size_t phrase) const { return progress.met >> phrase & 1; }

  std::vector<std::vector<TokenId>> phrases_;
  std::shared_ptr<const std::vector<TokenId>> continuations_;
};

}  // namespace linnet::model
