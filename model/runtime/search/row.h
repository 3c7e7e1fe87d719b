#pragma once

#include <span>

#include "model/runtime/search/token.h"

namespace linnet::model {

// The part of a row of logits that a search needs: the `best` highest (of equal ones those of lower
// tokens) and the logit of `also`; or all of them.
struct RowNeed {
  int best = 0;
  TokenId also = kNoToken;
  bool all = false;
};

// A row of logits for a search: the logits of `tokens`, in any order, or the whole row if `tokens`
// is empty. It may contain more than RowNeed, and `also` twice.
struct RowLogits {
  std::span<const float> logits;
  std::span<const TokenId> tokens = {};
  float log_normalizer = 0;  // logsumexp(row / temperature) over the whole vocabulary
};

}  // namespace linnet::model
