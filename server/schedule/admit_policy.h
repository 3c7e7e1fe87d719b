#pragma once

#include <span>
#include <vector>

namespace linnet::server {

// The fixed cost of an encoder call, and the max delay that it justifies.
//
// The defaults are for a CPU, where the fixed cost is small (bundle en-de, float32, one thread:
// 0.9 ms plus 40 us per token; a step 1.1 ms plus 61 us per row; tests/bench/results). On a GPU,
// where the time of a call or step hardly depends on its size, set both costs higher.
struct AdmitOptions {
  int max_wait_steps = 4;         // max steps by which the admission of a sequence is delayed
  float encode_call_steps = 0.2;  // fixed cost of an encoder call, in decoder steps
  int encode_call_tokens = 22;    // the same in source tokens
};

// Decides before each step whether the admissible sequences are encoded now or one step later.
//
// An encoder call delays every running sequence. A delay of admission costs only the admissible
// sequences, and further ones may join them in the same encoder call. So they are delayed until
// their delays, summed, would exceed the fixed cost of the call to the running sequences (the ski
// rental problem): the cost is at most twice that of the best decision with knowledge of later
// arrivals. An idle engine delays nothing and admits at once. Deterministic. Not thread-safe: the
// batcher owns it.
class AdmitPolicy {
 public:
  explicit AdmitPolicy(const AdmitOptions& options) : options_(options) {}

  // Call it once before each step, with the number of admissible and of running sequences. True:
  // admit the former now. False: delay them by this step.
  bool AdmitNow(int admissible, int running);

 private:
  AdmitOptions options_;
  int deferred_steps_ = 0;  // consecutive steps of delay
  int waited_ = 0;          // delay of the admissible sequences in these steps: sequences x steps
};

// Partitions sources into groups that are encoded together, each padded to its longest source.
// Returns indices into `lengths`, sorted by length. The partition minimises the sum of padded
// tokens plus call_tokens per group, so padding is at most call_tokens per source.
std::vector<std::vector<int>> GroupByLength(std::span<const int> lengths, int call_tokens);

}  // namespace linnet::server
