#include "server/markup/link_weights.h"

#include <algorithm>
#include <numeric>

namespace linnet::server {

LinkWeights::LinkWeights(const WordLinks& words)
    : begins_(words.target.size() + 1),
      sums_(words.target.size()),
      aligned_(words.source.size(), -1) {
  for (const WordLink& link : words.links) {
    ++begins_[link.target + 1];
    sums_[link.target] += link.weight;
  }
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
  sorted_.resize(words.links.size());
  std::vector<int> next(begins_.begin(), begins_.end());
  std::vector<float> best(words.source.size(), 0);
  // A word that every target word looks at, as a full stop, says little of any of them: the
  // squares of the shares of a target word are divided by what its source words have in all.
  std::vector<float> all(words.source.size(), 0);
  for (const WordLink& link : words.links) {
    WordLink& own = sorted_[next[link.target]++] = link;
    const float share = sums_[link.target] > 0 ? link.weight / sums_[link.target] : 0;
    own.weight = share * share;
    all[link.source] += own.weight;
    if (link.weight <= best[link.source]) continue;
    best[link.source] = link.weight;
    aligned_[link.source] = link.target;
  }
  std::fill(sums_.begin(), sums_.end(), 0.0f);
  for (WordLink& link : sorted_) {
    if (all[link.source] > 0) link.weight /= all[link.source];
    sums_[link.target] += link.weight;
  }
}

}  // namespace linnet::server
