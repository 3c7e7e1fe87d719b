#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/runtime/engine.h"
#include "server/base/mutex.h"
#include "server/schedule/stall_detector.h"

namespace linnet::server {

// Wraps an engine: converts exceptions into a status, times Add and Step with a StallDetector, and
// lets the scheduler replace the wrapped engine after a failure.
//
// Only the scheduler's thread calls it, except Check, which is thread-safe. Add and Step throw
// StalledCall.
class GuardedEngine final : public model::Engine {
 public:
  // The detector outlives the engine.
  GuardedEngine(std::unique_ptr<model::Engine> engine, StallDetector& detector,
                absl::Duration stall_timeout);

  // Without an engine, which Replace brings; with the info that it will have.
  GuardedEngine(const model::EngineInfo& info, StallDetector& detector,
                absl::Duration stall_timeout);

  const model::EngineInfo& info() const override { return info_; }
  bool HasRoom(std::span<const model::SequenceInput> sequences) const override;
  absl::Status Check(const model::SequenceInput& sequence) const override;
  absl::Status Add(std::span<const model::SequenceInput> sequences) override;
  bool encoding() const override;
  absl::StatusOr<std::vector<model::SequenceEvent>> Step() override;
  // Does nothing once a call has stalled; the supervisor's thread may call it then.
  void Release(model::SequenceId id) override;
  int sequences() const override;
  int rows_in_use() const override;

  // Not OK if the engine must be replaced: a step failed as a whole (other than out of memory), a
  // call threw, or the device is lost.
  const absl::Status& broken() const { return broken_; }
  void Remove();  // destroys the wrapped engine
  void Replace(std::unique_ptr<model::Engine> engine);

 private:
  void SetPaused(model::SequenceId id, bool paused) override;

  const model::EngineInfo info_;
  StallDetector& detector_;
  const absl::Duration stall_timeout_;
  mutable Mutex mu_;
  // Written under mu_ by the scheduler's thread, which reads it without the lock.
  std::unique_ptr<model::Engine> engine_;
  absl::Status broken_;  // used by the scheduler's thread alone
};

}  // namespace linnet::server
