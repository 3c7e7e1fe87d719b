#pragma once

#include "absl/time/time.h"

namespace linnet::server {

// The fixed cost of an encoder call, and the max delay that it justifies (EncodePolicy). Constants,
// not settings: nobody could say a better value without measuring the engine.
//
// The defaults are for a small model on one thread of a CPU; tests/bench/batching/run.py measures
// the costs of a bundle. On a GPU, where the time of a call or step hardly depends on its size,
// both costs are higher: there the engine measures them when it is loaded.
struct EncodeOptions {
  int max_wait_steps = 4;  // max steps by which a sequence is delayed while nothing is encoded
  float encode_call_steps = 0.2;  // fixed cost of an encoder call, in decoder steps
  int encode_call_tokens = 22;    // the same in source tokens
};

// When the batcher ends waiting calls (ShedPolicy).
struct ShedOptions {
  // The engine is overloaded once calls have waited without a break for this long, unless hardly
  // any come. By default it never is.
  absl::Duration interval = absl::InfiniteDuration();
  // While it is overloaded, the max time that a call waits for its first sequence to be added to
  // the batch.
  absl::Duration max_wait = absl::Seconds(2);
};

struct BatcherOptions {
  // Max source tokens encoded between two steps; a single longer sequence is still added.
  int max_encode_tokens = 4096;
  // Max running sequences; 0 = limited by the engine's rows alone.
  int max_sequences = 0;
  // Max part of the engine's rows that one call may hold (a document is one call, with all its
  // lines); and all calls of a client, while other clients wait; and all batch calls, while or soon
  // after others are there. One sequence of each is always added. The quarter that is left serves
  // others at once (tests/bench/server/overload.py measures two unequal clients). A constant, not a
  // setting.
  double max_rows_ratio = 0.75;
  EncodeOptions encode = {};
  ShedOptions shed = {};
};

}  // namespace linnet::server
