#include "model/runtime/search/repeats.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace linnet::model {

size_t NgramHistory::Bucket(std::span<const TokenId> target, int end) const {
  uint32_t hash = 0;
  for (int i = end - n_ + 1; i < end; ++i)
    hash = (hash ^ static_cast<uint32_t>(At(target, i))) * 0x9E3779B1;
  return hash >> 16 & (kBuckets - 1);
}

void NgramHistory::Remember(std::span<const TokenId> target) {
  const int length = static_cast<int>(std::ssize(target)) + 1;
  if (length != length_) known_ = std::exchange(length_, length);
  for (int end = std::max(known_ + 1, n_ - 1); end <= length; ++end) {
    int& newest = newest_[Bucket(target, end)];
    if (newest != kNone && entries_[newest].length == end) continue;
    entries_.push_back({.length = end, .older = newest});
    newest = static_cast<int>(std::ssize(entries_)) - 1;
  }
}

void NgramHistory::ExcludeRepeated(std::span<const TokenId> target,
                                   std::vector<TokenId>& excluded) const {
  const int length = static_cast<int>(std::ssize(target)) + 1;
  if (length < n_) return;
  for (int at = newest_[Bucket(target, length)]; at != kNone; at = entries_[at].older) {
    const int end = entries_[at].length;
    bool same = end < length;
    for (int i = 1; same && i < n_; ++i) same = At(target, end - i) == At(target, length - i);
    if (same) excluded.push_back(At(target, end));
  }
}

void ExcludeConsecutiveRepeats(std::span<const TokenId> target, int times,
                               std::vector<TokenId>& excluded) {
  if (times <= 0) return;
  const int64_t size = std::ssize(target);
  for (int64_t n = 1; n <= kMaxRepeatedNgram; ++n) {
    // The n-gram occurs once more with the next token if it and each of so many tokens before it
    // equals the one n before, the first n excepted.
    const int64_t before = TokensInARow(n, times + int64_t{1}) - 1;
    if (before > size) break;
    const auto last = target.rbegin();  // backwards: most tokens differ at once
    if (std::equal(last, last + (before - n), last + n)) excluded.push_back(target[size - n]);
  }
}

int ConsecutiveRepeats(std::span<const TokenId> tokens) {
  const int size = static_cast<int>(std::ssize(tokens));
  int most = std::min(size, 1);
  for (int n = 1; n <= kMaxRepeatedNgram; ++n) {
    int equal = 0;  // number of tokens up to this one that equal the one n before them
    for (int i = n; i < size; ++i) {
      equal = tokens[i] == tokens[i - n] ? equal + 1 : 0;
      while (TokensInARow(n, most + 1) <= equal + n) ++most;
    }
  }
  return most;
}

}  // namespace linnet::model
