// A load run: who calls when. It knows nothing of what a call is.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stop_token>
#include <vector>

#include "absl/time/time.h"
#include "client/load/arrivals.h"
#include "client/load/record.h"
#include "client/load/timeline.h"

namespace linnet::client {

// What stands for the run until now, on a terminal.
struct LoadProgress {
  absl::Duration elapsed;
  int64_t in_flight = 0;
  int64_t ended = 0;   // since the start, of those that were to stay
  int64_t failed = 0;  // of these
  // Since the last report.
  absl::Duration since;
  int64_t answered = 0;
  absl::Duration p50, p99;  // from the time due
};

// A call is bad if it was not answered within `limit` of its time; those that
// leave on purpose are not counted.
struct GiveUp {
  absl::Duration limit;
  int64_t max_bad;
};

// An open loop sends each call at its time, as users who do not wait for each
// other would: `callers` only bounds how many are under way, and a call that
// had to wait for a caller is still measured from its own time. (A loop that
// waits for an answer before it goes on would leave out just those calls that a
// stalled server keeps waiting: "coordinated omission".) A closed loop has
// `callers` users, each of whom calls again as soon as the answer is there.
struct LoadPlan {
  bool open = true;
  ArrivalKind arrivals = ArrivalKind::kPoisson;       // of an open loop
  RateSchedule schedule = RateSchedule::Constant(1);  // of an open loop, behind the warm-up
  int callers = 256;
  absl::Duration warm_up = absl::ZeroDuration();  // from the start; not measured
  absl::Duration duration = absl::Seconds(30);    // of the measurement, behind the warm-up
  int64_t max_calls = std::numeric_limits<int64_t>::max();  // the warm-up's included
  // How long after the end calls that were due are still sent.
  absl::Duration drain = absl::Seconds(30);
  uint64_t seed = 1;
  // Ends the run when more measured calls are bad: there is nothing more to
  // learn.
  std::optional<GiveUp> give_up;
  // Called twice a second from a thread of its own.
  std::function<void(const LoadProgress&)> on_progress;
  // Called for each call that has ended, by one thread at a time.
  std::function<void(const CallTimes&, const CallOutcome&)> on_call;
};

// Makes call number `index`, as caller number `caller`, and blocks until it has
// ended.
using MakeCall = std::function<CallOutcome(int64_t index, int caller)>;

struct LoadResult {
  LoadRecord record;
  // The parts of the schedule, ramps in eight: what was offered there and what
  // came of it. Empty at a constant rate and in a closed loop.
  std::vector<LoadRecord> parts;
  Timeline timeline;
  absl::Duration elapsed;  // until the last call had ended
  bool stopped = false;
  bool gave_up = false;
};

// Runs the plan on `callers` threads. A stop ends it: nothing more is sent, and
// calls under way are waited for (who stops also cancels them).
LoadResult RunLoad(const LoadPlan& plan, const MakeCall& call, std::stop_token stop);

}  // namespace linnet::client
