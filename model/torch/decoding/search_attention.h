#pragma once

#include <span>
#include <vector>

#include "model/runtime/search/token.h"
#include "model/torch/decoding/alignment_pass.h"

namespace linnet::model {

// The attention weights of all rows of a search, from which those of its best hypothesis are taken
// at the end. They have the bits of an AlignmentPass where rows do not depend on the others of a
// step.
//
// The host decoder fills it where the module gives weights and logits in one step. It holds
// [steps, live hypotheses, text tokens] floats until the sequence ends. Not thread-safe.
class SearchAttention {
 public:
  using Text = AlignmentPass::Text;
  explicit SearchAttention(Text text) : text_(text) {}

  // Adds a step: its rows, each with at least one weight per source token and `width` of them, and
  // the parents and last tokens of the hypotheses that are live after it.
  void Add(std::span<const float> rows, size_t width, std::span<const int> parents,
           std::span<const TokenId> tokens);

  // The weights of a hypothesis, [target, text] row-major. The decoder read the `silent` tokens
  // before `target`, which ends with eos; they are left out.
  std::vector<float> Of(std::span<const TokenId> silent, std::span<const TokenId> target) const;

 private:
  struct Step {
    size_t first;  // of its weights
    std::vector<int> parents;
    std::vector<TokenId> tokens;
  };

  Text text_;
  std::vector<Step> steps_;
  std::vector<float> weights_;
};

}  // namespace linnet::model
