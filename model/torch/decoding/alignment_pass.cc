#include "model/torch/decoding/alignment_pass.h"

#include <utility>

namespace linnet::model {

AlignmentPass::AlignmentPass(std::vector<TokenId> silent, const std::vector<TokenId>& target,
                             TokenId start, Text text)
    : silent_(static_cast<int>(silent.size())),
      target_(std::move(silent)),
      start_(start),
      text_(text) {
  target_.insert(target_.end(), target.begin(), target.end());
  attention_.reserve(target.size() * text_.tokens);
}

void AlignmentPass::Take(std::span<const float> weights) {
  if (++steps_ <= silent_) return;
  const auto own = weights.subspan(text_.begin, text_.tokens);
  attention_.insert(attention_.end(), own.begin(), own.end());
}

}  // namespace linnet::model
