#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/runtime/search/token.h"

namespace linnet::model {

// The two rules of a search against targets that repeat themselves, the typical failure of a model
// that was trained too little. Both add the tokens to `excluded` that must not come next, some of
// them twice.

// SearchOptions::no_repeat_ngram_size: no n-gram occurs twice in the start token and a target
// (Paulus et al. 2018, section 2.5).
//
// Remembers at which lengths the live hypotheses of a search had which last n-1 tokens, by a hash
// of these, so that a step costs no more for a long target. A search owns it; not thread-safe.
class NgramHistory {
 public:
  NgramHistory(int n, TokenId start) : n_(n), start_(start), newest_(kBuckets, kNone) {}

  // Remembers the target of a live hypothesis. Call it for all of a step; steps may be left out.
  void Remember(std::span<const TokenId> target);
  // Adds the tokens that would repeat an n-gram of a target that is remembered.
  void ExcludeRepeated(std::span<const TokenId> target, std::vector<TokenId>& excluded) const;

 private:
  static constexpr int kBuckets = 1024;
  static constexpr int kNone = -1;
  struct Entry {
    int length;
    int older;  // index of the next entry of the bucket
  };
  // Token number i of the start token and the target.
  TokenId At(std::span<const TokenId> target, int i) const {
    return i == 0 ? start_ : target[i - 1];
  }
  // The bucket of the n-1 tokens before token number `end`.
  size_t Bucket(std::span<const TokenId> target, int end) const;

  int n_;
  TokenId start_;
  std::vector<int> newest_;  // by bucket: index into entries_
  std::vector<Entry> entries_;
  int known_ = kNone, length_ = kNone;  // in tokens: of the step before, and of this one
};

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
