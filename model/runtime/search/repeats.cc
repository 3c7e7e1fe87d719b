#include "model/runtime/search/repeats.h"

#include <algorithm>
#include <cstdint>

namespace linnet::model {

void ExcludeRepeatedNgrams(std::span<const TokenId> history, int n,
                           std::vector<TokenId>& excluded) {
  if (n <= 0 || std::ssize(history) < n) return;
  const auto last = history.end() - (n - 1);  // the last n-1 tokens
  for (auto start = history.begin(); start + (n - 1) != history.end(); ++start) {
    if (std::equal(last, history.end(), start)) excluded.push_back(start[n - 1]);
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
    const auto last = target.end() - (before - n);
    if (std::equal(last, target.end(), last - n)) excluded.push_back(target[size - n]);
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
