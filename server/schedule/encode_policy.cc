#include "server/schedule/encode_policy.h"

#include <algorithm>
#include <cstdint>
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
  // cost[n]: min cost of the n shortest sources; their last group begins at first[n]. A group of
  // order[begin, end) adds call_tokens + longest * (end - begin), so that for each `end` the lowest
  // of the lines cost[begin] - longest * begin is sought. `longest` never falls: the lower envelope
  // of the lines is walked once, from the first to the last.
  std::vector<int64_t> cost(count + 1);
  std::vector<int> first(count + 1), envelope = {0};
  const auto line = [&](int begin, int64_t longest) { return cost[begin] - longest * begin; };
  // True if b, which begins between a and c, is nowhere below both of them.
  const auto above = [&](int a, int b, int c) {
    return (cost[c] - cost[a]) * (b - a) <= (cost[b] - cost[a]) * (c - a);
  };
  size_t at = 0;
  for (int end = 1; end <= count; ++end) {
    const int64_t longest = lengths[order[end - 1]];
    while (at + 1 < envelope.size() &&
           line(envelope[at + 1], longest) < line(envelope[at], longest))
      ++at;
    first[end] = envelope[at];
    cost[end] = line(envelope[at], longest) + call_tokens + longest * end;
    while (envelope.size() > 1 && above(envelope.end()[-2], envelope.back(), end))
      envelope.pop_back();
    envelope.push_back(end);
    at = std::min(at, envelope.size() - 1);
  }
  std::vector<std::vector<int>> groups;
  for (int end = count; end > 0; end = first[end])
    groups.emplace_back(order.begin() + first[end], order.begin() + end);
  std::reverse(groups.begin(), groups.end());
  return groups;
}

}  // namespace linnet::server
