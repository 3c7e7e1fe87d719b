#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "model/runtime/engine.h"
#include "server/base/monotonic.h"

namespace linnet::server {

class EngineMemory;
class Supervisor;
struct Sequence;

// State of an engine, for health checks and the status RPC.
struct EngineHealth {
  enum class State {
    kUp,
    kDown,  // it failed and is being rebuilt
    // It stalled, lost its device or could not be rebuilt, or its thread threw: only a new process
    // helps.
    kFailed,
  };
  State state = State::kUp;
  int restarts = 0;  // successful rebuilds since the start of the process
  absl::Status why;  // the error of the last failure
};

// Where the engine of a model is.
enum class LoadState { kAvailable, kLoading, kLoaded };

// The loads of an engine so far.
struct LoadStats {
  LoadState state = LoadState::kLoaded;
  int64_t loads = 0;
  int64_t failures = 0;
  int64_t unloads = 0;
  int64_t bytes = 0;  // memory of the engine, measured in its last load; 0: not loaded yet
  // The time of the last load, of the first one with its warm-up; before that, an estimate by the
  // loads of other models.
  absl::Duration load_time = absl::ZeroDuration();

  bool operator==(const LoadStats&) const = default;
};

// Timeouts of an engine, and the supervisor that enforces them.
struct Supervision {
  absl::Duration stall_timeout = absl::InfiniteDuration();  // for one encoder call or step
  absl::Duration load_timeout = absl::InfiniteDuration();   // for building an engine
  int max_failed_rebuilds = 5;                              // consecutive: RestartPolicy
  Supervisor* supervisor = nullptr;                         // outlives the scheduler
};

// An engine that is loaded when its first sequences come, and unloaded when another one needs its
// memory.
struct LoadOnDemand {
  EngineMemory* memory = nullptr;  // outlives the scheduler; null: the engine is always loaded
  bool pinned = false;             // loaded at start and never unloaded
  model::EngineInfo info = {};     // that the engine will have, unless it is pinned
  int64_t bytes = 0;               // estimate of its memory before the first load
  // Returns sequences without sinks that take about so many rows. They are decoded after the first
  // load, so that the cost of steps is known before the sequences that wait for it are decoded.
  // Called on the scheduler's thread. Null: there is no warm-up.
  std::function<std::vector<std::unique_ptr<Sequence>>(int rows)> warm_up = nullptr;
};

// What the scheduler knows of its engine. Decides whether it takes sequences; the time is an
// argument. Not thread-safe: the scheduler's lock guards it.
struct EngineStatus {
  // Retry delay after an engine has failed for good: the time in which the process is restarted.
  static constexpr absl::Duration kProcessRestart = absl::Seconds(5);

  EngineHealth health;
  LoadStats loads;
  MonotonicTime last_used;  // when the last sequences came, or the engine was loaded
  // After a load on demand has failed: until then sequences are refused. The next ones load it.
  std::optional<MonotonicTime> next_load;
  std::vector<std::string> failed_requests;  // of the last failure

  // UNAVAILABLE if the engine takes no sequences now.
  absl::Status Use(MonotonicTime now);
  EngineHealth HealthAt(MonotonicTime now) const;
  void SetDown(EngineHealth::State state, const absl::Status& why,
               std::vector<std::string> request_ids);
  void SetRebuilt();
  void SetLoaded(absl::Duration time, MonotonicTime now);
};

}  // namespace linnet::server
