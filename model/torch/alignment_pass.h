#pragma once

#include <span>
#include <utility>
#include <vector>

#include "model/runtime/search/search.h"

namespace linnet::model {

// A sequence's second way through the decoder, after its search: the best target is given, a token
// a step, in one row, and what the attention gives each token of the source is kept.
//
// It needs no logits, so that a step costs a part of what a step of the search costs, and the
// search itself knows nothing of it: what is found is the same with and without.
class AlignmentPass {
 public:
  // `target` with its end; the decoder starts from `start`.
  AlignmentPass(std::vector<TokenId> target, TokenId start, int source_tokens);

  // Tokens of the target that are done.
  int steps() const { return steps_; }
  bool finished() const { return steps_ == target_.size(); }
  // Of the step to come.
  TokenId input() const { return steps_ == 0 ? start_ : target_[steps_ - 1]; }
  // What the step gave: at least the source's tokens.
  void Take(std::span<const float> weights);

  // [target, source] row-major, complete once finished. Leaves nothing behind.
  std::vector<float> TakeAttention() { return std::exchange(attention_, {}); }

 private:
  std::vector<TokenId> target_;
  TokenId start_;
  int source_tokens_;
  int steps_ = 0;
  std::vector<float> attention_;
};

}  // namespace linnet::model
