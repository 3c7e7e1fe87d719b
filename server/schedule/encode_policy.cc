#include "server/schedule/encode_policy.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

namespace linnet::server {

EncodeOptions WithMeasuredCost(EncodeOptions options, const model::EngineInfo& info) {
  if (info.encoder_cost) {
    options.encode_call_steps = info.encoder_cost->call_steps;
    options.encode_call_tokens = info.encoder_cost->call_tokens;
  }
  return options;
}

bool EncodePolicy::EncodeNow(int eligible, int running, bool encoding) {
  waited_ += eligible;  // counts this step, in case they are delayed
  const bool pays =
      deferred_steps_ < options_.max_wait_steps && waited_ < running * options_.encode_call_steps;
  const bool wait = eligible == 0 || (running > 0 && (encoding || pays));
  deferred_steps_ = wait && eligible > 0 ? deferred_steps_ + 1 : 0;
  if (deferred_steps_ == 0) waited_ = 0;
  return !wait;
}

std::vector<std::vector<int>> GroupByLength(std::span<const int> lengths, int call_tokens) {
  const int count = static_cast<int>(lengths.size());
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return lengths[a] < lengths[b]; });
  // cost[n]: min cost of the n shortest sources; their last group begins at first[n].
  std::vector<int64_t> cost(count + 1, std::numeric_limits<int64_t>::max());
  std::vector<int> first(count + 1);
  cost[0] = 0;
  for (int end = 1; end <= count; ++end) {
    const int64_t longest = lengths[order[end - 1]];
    for (int begin = end - 1; begin >= 0; --begin) {
      const int64_t padded = longest * (end - begin);
      if (padded > cost[end]) break;  // padded only grows from here
      if (const int64_t all = cost[begin] + call_tokens + padded; all <= cost[end]) {
        cost[end] = all;
        first[end] = begin;
      }
    }
  }
  std::vector<std::vector<int>> groups;
  for (int end = count; end > 0; end = first[end])
    groups.emplace_back(order.begin() + first[end], order.begin() + end);
  std::reverse(groups.begin(), groups.end());
  return groups;
}

}  // namespace linnet::server
