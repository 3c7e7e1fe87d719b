#pragma once

#include <span>
#include <vector>

#include "model/runtime/engine.h"
#include "server/schedule/batcher_options.h"

namespace linnet::server {

// With the costs that the engine has measured, if it has.
EncodeOptions WithMeasuredCost(EncodeOptions options, const model::EngineInfo& info);

// Decides before each step whether the eligible sequences are encoded now or one step later.
//
// An encoder call delays every running sequence. A delay costs only the eligible
// sequences, and further ones may join them in the same encoder call. So they are delayed until
// their delays, summed, would exceed the fixed cost of the call to the running sequences (the ski
// rental problem): the cost is at most twice that of the best decision with knowledge of later
// arrivals. An idle engine delays nothing and adds all at once.
//
// Where a device encodes beside the decoder, a call before the last one has ended would only wait
// behind it, with few sources, and its sequences would hold rows meanwhile. If calls take longer
// than the steps between them, they would become more and smaller, and the rows idle. So sequences
// are delayed, for as long as it takes, until the last call has ended. Deterministic. Not
// thread-safe: the batcher owns it.
class EncodePolicy {
 public:
  explicit EncodePolicy(const EncodeOptions& options) : options_(options) {}

  // Call it once before each step, with the number of eligible and of running sequences, and
  // whether the last encoder call goes on. True: add the former now. False: delay them by this
  // step.
  bool EncodeNow(int eligible, int running, bool encoding);

 private:
  EncodeOptions options_;
  int deferred_steps_ = 0;  // consecutive steps of delay
  int waited_ = 0;          // delay of the eligible sequences in these steps: sequences x steps
};

// Partitions sources into groups that are encoded together, each padded to its longest source.
// Returns indices into `lengths`, sorted by length. The partition minimises the sum of padded
// tokens plus call_tokens per group, so padding is at most call_tokens per source.
std::vector<std::vector<int>> GroupByLength(std::span<const int> lengths, int call_tokens);

}  // namespace linnet::server
