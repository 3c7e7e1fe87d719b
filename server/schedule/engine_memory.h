#pragma once

#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"

namespace linnet::server {

class Scheduler;

// Bounds the memory of the engines that are loaded on demand. A scheduler reserves memory before it
// loads its engine. If there is no room, the engines that were used least recently are asked to
// unload, among those that hold no sequences and are not pinned; none in use is ever unloaded.
//
// It also knows how long loads take, from all of them: what a model that was never loaded will
// need.
//
// One per server; outlives the schedulers. Thread-safe. Its lock is taken before that of a
// scheduler.
class EngineMemory {
 public:
  // `max_bytes` 0: no limit.
  explicit EngineMemory(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // RESOURCE_EXHAUSTED if there can never be room for an engine of `bytes`, because the limit is
  // too low or pinned engines leave too little.
  absl::Status CheckFits(int64_t bytes) const;
  // Reserves `bytes` for the engine of a scheduler that has none and is about to load it. False if
  // there is no room now, when idle engines are asked to unload, or if another one is loading, so
  // that the growth of the process in a load is the memory of that engine. Try again soon.
  bool Reserve(Scheduler& scheduler, int64_t bytes);
  // The engine is loaded, and takes this much. That may exceed the limit, until the next load.
  void SetLoaded(Scheduler& scheduler, int64_t bytes);
  // The engine is unloaded, or was not loaded.
  void Release(Scheduler& scheduler);

  // A bundle of `bytes` was loaded in this time.
  void RecordLoad(int64_t bytes, absl::Duration time);
  // The time that a bundle of `bytes` will take; zero before the first load of any. At most the
  // mean of all loads: most of a small one may be its warm-up, which takes no longer in a large
  // one, and an estimate beyond the deadlines of all calls would never be corrected by a load.
  absl::Duration EstimateLoad(int64_t bytes) const;

  int64_t max_bytes() const { return max_bytes_; }
  int64_t bytes() const;  // reserved

 private:
  // Asks idle engines to unload, the least recently used first, until `bytes` would be free.
  void MakeRoom(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int64_t max_bytes_;
  mutable Mutex mu_;
  std::map<Scheduler*, int64_t> reserved_ ABSL_GUARDED_BY(mu_);
  int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;  // sum of them
  Scheduler* loading_ ABSL_GUARDED_BY(mu_) = nullptr;
  int64_t loads_ ABSL_GUARDED_BY(mu_) = 0;
  // Sums over all loads.
  int64_t loaded_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Duration load_time_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
