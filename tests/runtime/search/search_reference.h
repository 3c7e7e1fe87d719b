#pragma once

#include <functional>
#include <vector>

#include "model/runtime/search/search.h"

namespace linnet::model {

// Logits [V] of the token after `target` (without the leading start token).
using ToyModel = std::function<std::vector<float>(const std::vector<TokenId>& target)>;

// The meaning of each token of a toy vocabulary: the byte of a byte piece, or one of the constants
// below. Empty: any token may follow any.
using TokenSpelling = std::vector<int>;
inline constexpr int kSpellsText = -1, kSpellsEnd = -2, kSpellsControl = -3;
inline constexpr int kSpellsFirstControl = -4, kSpellsBlank = -5;

// Number of bytes missing to complete a UTF-8 character; -1 if none has these first bytes.
int MissingBytes(const std::vector<int>& bytes);

// logsumexp(logits / temperature), summed in double.
float LogNormalizer(const std::vector<float>& logits, float temperature);

// Changes the scores of the next tokens of a hypothesis, `tokens` with the leading start token.
using ScoreRule = std::function<void(const std::vector<TokenId>& tokens,
                                     const std::vector<float>& logits, std::vector<float>& scores)>;

// A slow reference with the rules of fairseq's SequenceGenerator in their order: a full matrix of
// beam rows at every step, masks as minus infinity, one sort of all beam × V candidates. Returns
// all hypotheses that ended, best first.
std::vector<Hypothesis> ReferenceSearch(const SearchOptions& options, const SpecialTokens& special,
                                        const std::vector<TokenId>& prefix, const ToyModel& model,
                                        const TokenSpelling& spelling = {},
                                        const ScoreRule& rule = nullptr);

}  // namespace linnet::model
