// A load run: who calls when. It knows nothing of what a call is.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stop_token>

#include "absl/time/time.h"
#include "client/load/arrivals.h"
#include "client/load/record.h"

namespace linnet::client {

// An open loop sends each call at its time, as users who do not wait for each other would:
// `callers` only bounds how many are under way, and a call that had to wait for a caller is still
// measured from its own time. (A loop that waits for an answer before it goes on would leave out
// just those calls that a stalled server keeps waiting: "coordinated omission".) A closed loop has
// `callers` users, each of whom calls again as soon as the answer is there.
struct LoadPlan {
  bool open = true;
  ArrivalKind arrivals = ArrivalKind::kPoisson;  // of an open loop
  double calls_per_second = 1;                   // of an open loop
  int callers = 256;
  absl::Duration warm_up = absl::ZeroDuration();  // from the start; not measured
  absl::Duration duration = absl::Seconds(30);    // of the measurement, behind the warm-up
  int64_t most_calls = std::numeric_limits<int64_t>::max();  // the warm-up's included
  // How long after the end calls that were due are still sent.
  absl::Duration drain = absl::Seconds(30);
  uint64_t seed = 1;
};

// Makes call number `index`, as caller number `caller`, and blocks until it has ended.
using MakeCall = std::function<CallOutcome(int64_t index, int caller)>;

struct LoadResult {
  LoadRecord record;
  absl::Duration elapsed;  // until the last call had ended
  bool stopped = false;
};

// Runs the plan on `callers` threads. A stop ends it: nothing more is sent, and calls under way are
// waited for (who stops also cancels them).
LoadResult RunLoad(const LoadPlan& plan, const MakeCall& call, std::stop_token stop);

}  // namespace linnet::client
