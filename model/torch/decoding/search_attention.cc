#include "model/torch/decoding/search_attention.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace linnet::model {

void SearchAttention::Add(std::span<const float> rows, size_t width, std::span<const int> parents,
                          std::span<const TokenId> tokens) {
  steps_.push_back({.first = weights_.size(),
                    .parents = {parents.begin(), parents.end()},
                    .tokens = {tokens.begin(), tokens.end()}});
  for (; !rows.empty(); rows = rows.subspan(width)) {
    const auto own = rows.subspan(text_.begin, text_.tokens);
    weights_.insert(weights_.end(), own.begin(), own.end());
  }
}

std::vector<float> SearchAttention::Of(std::span<const TokenId> silent,
                                       std::span<const TokenId> target) const {
  std::vector<TokenId> read(silent.begin(), silent.end());
  read.insert(read.end(), target.begin(), target.end());
  std::vector<float> attention;
  attention.reserve(target.size() * text_.tokens);
  // The hypotheses that begin as the target does. Sampled ones may be equal for a while; their rows
  // are equal as well.
  std::vector<bool> same = {true};
  for (size_t t = 0; t < read.size(); ++t) {
    const Step& step = steps_[t];
    const size_t row = std::ranges::find(same, true) - same.begin();
    if (t >= silent.size()) {
      const auto weights = weights_.begin() + static_cast<int64_t>(step.first + row * text_.tokens);
      attention.insert(attention.end(), weights, weights + text_.tokens);
    }
    std::vector<bool> next(step.parents.size());
    for (size_t i = 0; i < next.size(); ++i)
      next[i] = same[step.parents[i]] && step.tokens[i] == read[t];
    same = std::move(next);
  }
  return attention;
}

}  // namespace linnet::model
