#pragma once

#include <span>
#include <vector>

#include "model/runtime/search/candidates.h"
#include "model/runtime/search/token.h"

namespace linnet::model {

// The tokens and scores of the live hypotheses of a search, which all have the same length.
//
// A step costs no more for long targets than for short ones: the first continuation of a hypothesis
// takes over its memory. Each further one takes the memory of a hypothesis without continuations,
// and copies only what follows the prefix that both have in common. The search owns it; not
// thread-safe.
class LiveHypotheses {
 public:
  LiveHypotheses() : paths_(1), slots_(1), common_(1) {}  // one hypothesis without tokens

  int size() const { return size_; }
  std::span<const TokenId> tokens(int i) const { return std::span(path(i).tokens).first(length_); }
  std::span<const float> token_scores(int i) const { return path(i).scores; }
  float sum(int i) const { return path(i).sum; }
  // Length of the longest prefix that all have in common, scores included. Requires that there is
  // one.
  int common_prefix() const;
  // The tokens of hypothesis i with one more; valid until the next call.
  std::span<const TokenId> TokensWith(int i, TokenId token);

  // Replaces the hypotheses by these continuations of them.
  void Step(std::span<const Candidate> next);

 private:
  struct Path {
    std::vector<TokenId> tokens;  // may have one behind the last (TokensWith)
    std::vector<float> scores;
    float sum = 0;
  };
  const Path& path(int i) const { return paths_[slots_[i]]; }
  void AssignSlots(std::span<const Candidate> next);
  void UpdateCommon(std::span<const Candidate> next);

  int size_ = 1, length_ = 0;
  std::vector<Path> paths_;
  std::vector<int> slots_;   // indices into paths_: those of the hypotheses, then the others
  std::vector<int> common_;  // [size, size]: length of the prefix that two have in common
  std::vector<int> heirs_, next_slots_, next_common_;  // of one call; keep their memory
};

}  // namespace linnet::model
