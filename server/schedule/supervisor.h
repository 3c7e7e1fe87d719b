#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/monotonic.h"
#include "server/base/mutex.h"

namespace linnet::server {

class Scheduler;

// Why no engine of this process is to be used any more.
struct EngineFailure {
  std::string model;
  absl::Status why;
  std::vector<std::string> request_ids;  // of the calls that the engine was working on
};

// Looks after all engines of a process, and decides when the process has to end: when an engine
// does not return from a call, has lost its device, or cannot be made again. The calls of that
// engine have their errors by then. Whoever runs the process asks for `failure`, lets the other
// calls end and leaves; if that takes longer than the grace, `end` is called, which does not
// return.
//
// It reads no clock, does no I/O and destroys nothing: one thread calls Tick now and then. The rest
// is thread-safe.
class Supervisor {
 public:
  explicit Supervisor(std::function<void()> end) : end_(std::move(end)) {}

  // For as long as it is there, its calls are timed. Remove waits for a Tick in progress.
  void Add(Scheduler& scheduler);
  void Remove(Scheduler& scheduler);
  // At first there is none: while models load there are no calls to wait for.
  void SetGrace(absl::Duration grace);

  void Tick(MonotonicTime now);
  // The first one.
  std::optional<EngineFailure> failure() const;

 private:
  const std::function<void()> end_;
  mutable Mutex mu_;
  std::set<Scheduler*> schedulers_ ABSL_GUARDED_BY(mu_);
  absl::Duration grace_ ABSL_GUARDED_BY(mu_) = absl::ZeroDuration();
  std::optional<EngineFailure> failure_ ABSL_GUARDED_BY(mu_);
  MonotonicTime failed_at_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
