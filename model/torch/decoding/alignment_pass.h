#pragma once

#include <span>
#include <utility>
#include <vector>

#include "model/runtime/search/token.h"

namespace linnet::model {

// Forced decoding of a sequence's best hypothesis after its search, to obtain the alignment: each
// row receives one target token, and the attention weights of the source tokens are kept.
//
// The pass computes no logits, so a row costs a part of a search's row. It does not affect the
// search: hypotheses are the same with and without alignment. ScriptedEngine owns it; not
// thread-safe.
class AlignmentPass {
 public:
  // Source tokens that the attention keeps: those of the text.
  struct Text {
    int begin = 0;
    int tokens = 0;
  };
  // `target` ends with eos; `start` is the decoder's first input. The decoder reads the `silent`
  // tokens before the target, and the attention leaves them out.
  AlignmentPass(std::vector<TokenId> silent, const std::vector<TokenId>& target, TokenId start,
                Text text);

  // Target tokens processed so far.
  int steps() const { return steps_; }
  int left() const { return static_cast<int>(target_.size()) - steps_; }
  bool finished() const { return left() == 0; }
  // Input of the row after so many target tokens.
  TokenId input(int position) const { return position == 0 ? start_ : target_[position - 1]; }
  // Adds the attention weights of the next row, at least one per source token.
  void Take(std::span<const float> weights);

  // [target, text] row-major, complete once finished. Moves the weights out.
  std::vector<float> TakeAttention() { return std::exchange(attention_, {}); }

 private:
  int silent_;
  std::vector<TokenId> target_;  // the silent tokens first
  TokenId start_;
  Text text_;
  int steps_ = 0;
  std::vector<float> attention_;
};

}  // namespace linnet::model
