#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/runtime/search/token.h"

namespace linnet::model {

// The two rules of a search against targets that repeat themselves, the typical failure of a model
// that was trained too little. Both add the tokens to `excluded` that must not come next, some of
// them twice.

// SearchOptions::no_repeat_ngram_size: adds the tokens that would repeat an n-gram of `history`,
// the start token and the target so far (Paulus et al. 2018, section 2.5).
void ExcludeRepeatedNgrams(std::span<const TokenId> history, int n, std::vector<TokenId>& excluded);

// The longest n-gram that the second rule compares: six words, the length of a phrase that a model
// falls into repeating, are hardly more tokens.
inline constexpr int kMaxRepeatedNgram = 16;

// The tokens that are `times` occurrences of an n-gram in a row. From the third on, the last one
// counts without its last token, which stands between words: "again, again, again" has three.
constexpr int64_t TokensInARow(int64_t n, int64_t times) {
  return n * times - (n > 1 && times > 2 ? 1 : 0);
}

// SearchOptions::max_ngram_repeats: adds the tokens that would end one more than `times`
// consecutive occurrences of an n-gram of at most kMaxRepeatedNgram tokens at the end of `target`.
// Unlike the first rule it lets words recur anywhere else, so it can be on for every text.
void ExcludeConsecutiveRepeats(std::span<const TokenId> target, int times,
                               std::vector<TokenId>& excluded);

// Max number of consecutive occurrences of an n-gram of at most kMaxRepeatedNgram tokens; 0 for no
// tokens. A source with "ha ha ha ha" has 4, so that its target may have 4 as well.
int ConsecutiveRepeats(std::span<const TokenId> tokens);

}  // namespace linnet::model
