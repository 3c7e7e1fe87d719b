#include "model/torch/decoding/alignment_pass.h"

#include <utility>

namespace linnet::model {

AlignmentPass::AlignmentPass(std::vector<TokenId> target, TokenId start, int source_tokens)
    : target_(std::move(target)), start_(start), source_tokens_(source_tokens) {
  attention_.reserve(target_.size() * source_tokens_);
}

void AlignmentPass::Take(std::span<const float> weights) {
  const auto own = weights.first(source_tokens_);
  attention_.insert(attention_.end(), own.begin(), own.end());
  ++steps_;
}

}  // namespace linnet::model
