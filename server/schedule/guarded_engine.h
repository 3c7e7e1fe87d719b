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

// An engine that may fail in any way: what it throws becomes a status, its calls are timed by a
// StallDetector, and another engine can be put in its place.
//
// Engine's methods, Remove and Replace belong to the engine's thread; Check to any. Seat and Step
// throw StalledCall.
class GuardedEngine final : public model::Engine {
 public:
  // The detector outlives it.
  GuardedEngine(std::unique_ptr<model::Engine> engine, StallDetector& detector,
                absl::Duration stall_timeout);

  const model::EngineInfo& info() const override { return info_; }
  bool HasRoom(std::span<const model::SequenceInput> sequences) const override;
  absl::Status Check(const model::SequenceInput& sequence) const override;
  absl::Status Add(std::span<const model::SequenceInput> sequences) override;
  absl::StatusOr<std::vector<model::SequenceEvent>> Step() override;
  // Nothing once a call has stalled: then any thread may.
  void Release(model::SequenceId id) override;
  int sequences() const override;
  int rows_in_use() const override;

  // OK, or why the engine is to be replaced: a step failed as a whole (for anything but want of
  // memory), something was thrown, or the device is lost.
  const absl::Status& broken() const { return broken_; }
  void Remove();
  void Replace(std::unique_ptr<model::Engine> engine);

 private:
  const model::EngineInfo info_;
  StallDetector& detector_;
  const absl::Duration stall_timeout_;
  mutable Mutex mu_;
  std::unique_ptr<model::Engine> engine_;  // changed under mu_; the engine's thread reads it freely
  absl::Status broken_;                    // the engine's thread's
};

}  // namespace linnet::server
