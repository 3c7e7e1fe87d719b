#include "server/schedule/engine_status.h"

#include <algorithm>
#include <utility>

#include "server/base/errors.h"

namespace linnet::server {

using State = EngineHealth::State;

absl::Status EngineStatus::Use(MonotonicTime now) {
  if (health.state == State::kFailed) return EngineDown(kProcessRestart);
  if (next_load.has_value()) {
    const absl::Duration left = Elapsed(now, *next_load);
    if (left > absl::ZeroDuration()) return EngineDown(std::max(left, absl::Seconds(1)));
    next_load.reset();
    health.state = State::kUp;
  }
  if (health.state == State::kDown) return EngineDown(absl::Seconds(1));
  last_used = now;
  return absl::OkStatus();
}

EngineHealth EngineStatus::HealthAt(MonotonicTime now) const {
  EngineHealth at = health;
  if (next_load.has_value() && *next_load <= now) at.state = State::kUp;
  return at;
}

void EngineStatus::SetDown(State state, const absl::Status& why,
                           std::vector<std::string> request_ids) {
  health.state = state;
  health.why = why;
  failed_requests = std::move(request_ids);
}

void EngineStatus::SetRebuilt() {
  health.state = State::kUp;
  ++health.restarts;
}

void EngineStatus::SetLoaded(absl::Duration time, MonotonicTime now) {
  loads.state = LoadState::kLoaded;
  ++loads.loads;
  loads.load_time = time;
  last_used = now;
}

}  // namespace linnet::server
