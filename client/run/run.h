// Runs load: schedules calls on threads and records their outcomes. The calls themselves are
// callbacks.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stop_token>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/run/arrivals.h"
#include "client/run/record.h"
#include "client/run/timeline.h"

namespace linnet::client {

// Progress of the run, for a terminal.
struct LoadProgress {
  absl::Duration elapsed;
  int64_t in_flight = 0;
  int64_t ended = 0;   // since the start, without abandoned calls
  int64_t failed = 0;  // included in `ended`
  // Since the last report.
  absl::Duration since;
  int64_t answered = 0;
  absl::Duration p50, p99;  // from the due time
};

// When a run gives up. A call is bad if it was not answered within `limit` of its due time;
// abandoned calls do not count.
struct GiveUp {
  absl::Duration limit;
  int64_t max_bad;
};

// An open loop sends each call at its due time, like independent users. `callers` bounds only the
// calls in flight, and a call that had to wait for a caller is still measured from its due time. (A
// loop that waits for an answer before the next call omits exactly the calls that a stalled server
// delays: "coordinated omission".) A closed loop has `callers` users, each of whom calls again as
// soon as the answer arrives.
struct LoadPlan {
  bool open = true;
  ArrivalKind arrivals = ArrivalKind::kPoisson;       // of an open loop
  RateSchedule schedule = RateSchedule::Constant(1);  // of an open loop, after the warm-up
  int callers = 256;
  absl::Duration warm_up = absl::ZeroDuration();            // from the start; not measured
  absl::Duration duration = absl::Seconds(30);              // of the measurement, after the warm-up
  int64_t max_calls = std::numeric_limits<int64_t>::max();  // the warm-up's included
  // Due calls are still sent for so long after the end.
  absl::Duration drain = absl::Seconds(30);
  uint64_t seed = 1;
  // Ends the run early when more measured calls than this are bad.
  std::optional<GiveUp> give_up;
  // Called twice a second from a thread of its own.
  std::function<void(const LoadProgress&)> on_progress;
  // Called for each call that has ended, by one thread at a time.
  std::function<void(const CallTimes&, const CallOutcome&)> on_call;
};

// Makes call number `index` as caller number `caller` and blocks until it has ended.
using MakeCall = std::function<CallOutcome(int64_t index, int caller)>;

struct LoadResult {
  LoadRecord record;
  // One record for each part of the schedule, eight for a ramp. Empty at a constant rate and in a
  // closed loop.
  std::vector<LoadRecord> parts;
  Timeline timeline;
  absl::Duration elapsed;  // until the last call had ended
  bool stopped = false;
  bool gave_up = false;
};

// Runs the plan on `callers` threads. After a stop nothing more is sent, and RunLoad waits for the
// calls in flight (the caller that requests the stop also cancels them). RESOURCE_EXHAUSTED if the
// system has not so many threads; calls that were sent before that are waited for.
absl::StatusOr<LoadResult> RunLoad(const LoadPlan& plan, const MakeCall& call,
                                   std::stop_token stop);

}  // namespace linnet::client
