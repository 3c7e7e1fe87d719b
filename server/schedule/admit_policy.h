#pragma once

#include <span>
#include <vector>

namespace linnet::server {

// What an encoder call costs beyond its tokens, and how long it may be put off for that.
//
// The defaults are for a CPU, where an encoder call costs little beside its tokens (bundle en-de,
// float32, one thread: 0.9 ms and 40 us a token; a step 1.1 ms and 61 us a row;
// tests/bench/results). Where calls and steps cost about the same whatever they hold, as on a GPU,
// both costs are higher.
struct AdmitOptions {
  int max_wait_steps = 4;  // whoever finds a free place sits down after so many steps at most
  float encode_call_steps = 0.2;  // a call without its tokens, in decoder steps
  int encode_call_tokens = 22;    // the same in source tokens
};

// When newcomers sit down. An encoder call holds up everybody who is seated; a newcomer who waits
// holds up nobody but himself, and may be joined by others for whom no further call is needed. So
// they wait until their waiting, summed up, would come to what the call costs the seated: whatever
// comes later, that is never more than twice the cost of having known (the ski rental problem). An
// idle engine has nobody to hold up and admits at once.
class AdmitPolicy {
 public:
  explicit AdmitPolicy(const AdmitOptions& options) : options_(options) {}

  // Asked before each step: `newcomers` have found a free place, `seated` are under way. True: let
  // them in now. False: they wait for this step.
  bool AdmitNow(int admissible, int running);

 private:
  AdmitOptions options_;
  int deferred_steps_ = 0;  // in a row
  int waited_ = 0;          // by newcomers in these steps, in steps
};

// Cuts newcomers into groups that are encoded together, each padded to its longest: indices into
// `lengths`, groups of similar length, shortest first. No other division has a smaller sum of
// padded tokens and call_tokens per group; so padding is at most call_tokens for each newcomer.
std::vector<std::vector<int>> GroupByLength(std::span<const int> lengths, int call_tokens);

}  // namespace linnet::server
