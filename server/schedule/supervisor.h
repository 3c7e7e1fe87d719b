#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/monotonic.h"
#include "server/base/mutex.h"
#include "server/base/process_gap.h"

namespace linnet::server {

// The failure of an engine that only a new process can repair.
struct EngineFailure {
  std::string model;
  absl::Status why;
  std::vector<std::string> request_ids;  // of the calls that were running
};

// An engine that is supervised: that of a Scheduler, or of the simulation of tests/server.
class Supervised {
 public:
  virtual ~Supervised() = default;
  // If a call of the engine has exceeded its timeout, ends all sequences and marks the engine as
  // failed for good.
  virtual void EndIfStalled(MonotonicTime now) = 0;
  // The process did not run for `gap` before `now`: a call in progress gets that much more time.
  virtual void ForgiveGap(absl::Duration gap, MonotonicTime now) = 0;
  // Set once the engine has failed for good.
  virtual std::optional<EngineFailure> failure() const = 0;
};

// Watches all engines of a process and decides when the process must end: when an engine does not
// return from a call, has lost its device, or cannot be rebuilt. By then the calls of that engine
// have ended with an error. The supervisor calls `failed` once; the main function then lets the
// other calls finish and exits. If that takes longer than the grace period, the supervisor calls
// `end`, which does not return.
//
// A Tick looks only at engines that are not idle, so idle models cost nothing.
//
// Time in which the process did not run (ProcessGap: no Tick for more than `max_gap`) counts
// against no engine: the calls in progress get that much more time.
//
// Reads no clock, does no I/O and owns no engine: one thread calls Tick periodically. All other
// functions are thread-safe.
class Supervisor {
 public:
  explicit Supervisor(
      std::function<void()> end, absl::Duration max_gap = absl::InfiniteDuration(),
      std::function<void()> failed = [] {})
      : end_(std::move(end)), failed_(std::move(failed)), gap_(max_gap) {}

  // The calls of an engine are checked from Add to Remove, unless it is idle. Remove waits for a
  // Tick in progress.
  void Add(Supervised& engine);
  void Remove(Supervised& engine);
  // Called by the engine's own thread. An engine that is idle is in no call, has not failed for
  // good, and its state does not change. From Add on it is not idle.
  void SetIdle(Supervised& engine, bool idle);
  // Set while all engines are idle; another number after one was not. As long as the number is the
  // same, no state has changed.
  std::optional<int64_t> idle_period() const;
  // The initial grace period is zero: while models load, there are no calls to wait for.
  void SetGrace(absl::Duration grace);

  void Tick(MonotonicTime now);
  // The first failure.
  std::optional<EngineFailure> failure() const;

 private:
  void KeepFailure(const Supervised& engine) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::function<void()> end_;
  const std::function<void()> failed_;
  mutable Mutex mu_;
  // Has room for all engines, so that SetIdle needs no memory.
  std::vector<Supervised*> busy_ ABSL_GUARDED_BY(mu_);
  size_t engines_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t idle_periods_ ABSL_GUARDED_BY(mu_) = 0;  // of all engines together
  absl::Duration grace_ ABSL_GUARDED_BY(mu_) = absl::ZeroDuration();
  std::optional<EngineFailure> failure_ ABSL_GUARDED_BY(mu_);
  std::optional<MonotonicTime> failed_at_ ABSL_GUARDED_BY(mu_);  // seen by a Tick
  ProcessGap gap_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
