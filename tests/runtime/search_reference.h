#pragma once

#include <functional>
#include <vector>

#include "model/runtime/search.h"

namespace linnet::model {

// Logits [V] of the token after `target` (without the leading start token).
using ToyModel = std::function<std::vector<float>(const std::vector<TokenId>& target)>;

// logsumexp(logits / temperature), summed in double.
float LogNormalizer(const std::vector<float>& logits, float temperature);

// The rules of fairseq's SequenceGenerator in their order, written for one reader and no hurry: a
// full matrix of beam rows at every step, masks as minus infinity, one sort of all beam × V
// candidates. All hypotheses that ended, best first.
std::vector<Hypothesis> ReferenceSearch(const SearchOptions& options, const SpecialTokens& special,
                                        const std::vector<TokenId>& prefix, const ToyModel& model);

}  // namespace linnet::model
