#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/runtime/engine.h"
#include "server/mutex.h"

namespace linnet::server {

// An engine that may fail in any way: what it throws becomes a status, a call that does not return
// is seen from outside, and another engine can be put in its place.
//
// Engine's methods, Remove and Replace belong to the engine's thread; the rest and Check to any.
class GuardedEngine final : public model::Engine {
 public:
  // Without an engine nothing can be seated, until there is one by Replace.
  explicit GuardedEngine(const model::EngineInfo& info,
                         std::unique_ptr<model::Engine> engine = nullptr);

  const model::EngineInfo& info() const override { return info_; }
  bool HasRoom(std::span<const model::SequenceInput> sequences) const override;
  absl::Status Check(const model::SequenceInput& sequence) const override;
  absl::Status Seat(std::span<const model::SequenceInput> sequences) override;
  absl::StatusOr<std::vector<model::SequenceEvent>> Step() override;
  void Release(model::SequenceId id) override;
  int sequences() const override;
  int rows_in_use() const override;

  // OK, or why the engine is to be replaced: a step failed as a whole (for anything but want of
  // memory), something was thrown, or it was given up.
  const absl::Status& broken() const { return broken_; }
  // It was given up while it was in the call that returned last.
  bool given_up() const;
  void Remove();
  void Replace(std::unique_ptr<model::Engine> engine);

  // If a call of Seat or Step has not returned that began at `begun_by` or earlier, gives the
  // engine up and calls `rescue`. Until that returns the engine's thread is not let back out of the
  // call, so that what it works on may be touched. False otherwise.
  bool GiveUpIfStuck(absl::Time begun_by, absl::FunctionRef<void()> rescue);
  // When the call of Seat or Step began that is under way; InfiniteFuture if there is none. For any
  // thread.
  absl::Time entered() const;

 private:
  void Enter();
  absl::Status Leave(absl::Status status);

  const model::EngineInfo info_;
  mutable Mutex mu_;
  std::unique_ptr<model::Engine> engine_;  // changed under mu_; the engine's thread reads it freely
  absl::Status broken_;                    // the engine's thread's
  absl::Time entered_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();  // while in a call
  bool given_up_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace linnet::server
