#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "model/runtime/engine.h"
#include "server/schedule/engine_status.h"
#include "server/schedule/guarded_engine.h"
#include "server/schedule/restart_policy.h"
#include "server/schedule/stall_detector.h"

namespace linnet::server {

// Builds and removes the engine of a scheduler, watches its calls, and decides when a failed one is
// built again.
//
// The scheduler owns it. Used by the scheduler's thread alone and, once a call has stalled, by the
// supervisor's; detector() is thread-safe.
class EngineLife {
 public:
  using Factory = std::function<absl::StatusOr<std::unique_ptr<model::Engine>>()>;
  EngineLife(Factory factory, const Supervision& supervision)
      : factory_(std::move(factory)),
        supervision_(supervision),
        restarts_(supervision.max_failed_rebuilds) {}

  // The engine that is built later, with the info that it will have.
  void Announce(const model::EngineInfo& info);
  // What Build has built. It runs from Install on.
  struct Built {
    std::unique_ptr<model::Engine> engine;
    int64_t bytes;  // by which the process has grown
  };
  // Destroys the engine, because the device may not have memory for two, and builds another one.
  absl::StatusOr<Built> Build();
  void Install(std::unique_ptr<model::Engine> engine);
  // Destroys the engine and returns its memory to the system.
  void Unload();
  // On the thread that made it.
  void Remove() {
    if (engine_ != nullptr) engine_->Remove();
  }

  // Null before Announce and Install.
  GuardedEngine* engine() const { return engine_.get(); }
  StallDetector& detector() { return detector_; }
  const StallDetector& detector() const { return detector_; }
  RestartPolicy& restarts() { return restarts_; }

 private:
  const Factory factory_;
  const Supervision supervision_;
  StallDetector detector_;
  RestartPolicy restarts_;
  std::unique_ptr<GuardedEngine> engine_;  // last: it uses the detector
};

}  // namespace linnet::server
