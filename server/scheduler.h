#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/batcher.h"
#include "server/mutex.h"

namespace linnet::server {

// One inbox and one thread around a batcher: the shell that waits, so that the batcher need not.
//
// Everything in the inbox holds a permit of Admission, so it needs no limit of its own. The engine is made, used and
// destroyed on the scheduler's thread, because LibTorch's settings belong to a thread.
class Scheduler {
 public:
  using EngineFactory = std::function<absl::StatusOr<std::unique_ptr<model::Engine>>()>;
  using Observer = std::function<void(const StepReport&, absl::Duration step)>;

  // Starts the thread, makes the engine there and waits until it is ready; the factory's error if it is not.
  static absl::StatusOr<std::unique_ptr<Scheduler>> Start(EngineFactory factory, const BatcherOptions& options,
                                                          Observer observer);
  // Ends what is left with UNAVAILABLE and joins the thread.
  ~Scheduler();

  const model::EngineInfo& engine_info() const { return info_; }
  // Thread-safe: the engine's checks read only what never changes.
  absl::Status Check(const model::SequenceInput& input) const;

  // Thread-safe, never blocks for long. Takes the sequences, all or none, iff OK is returned; UnavailableError after Drain.
  absl::Status Submit(std::vector<std::unique_ptr<Sequence>>& sequences);
  // A cancel flag was set: look at it now if the thread sleeps.
  void Wake();

  // Refuses newcomers from now on and returns when all that was taken has ended, or the deadline has passed: then what is
  // left ends with UNAVAILABLE.
  void Drain(absl::Time deadline);

 private:
  Scheduler() = default;
  void Run(EngineFactory factory, BatcherOptions options, Observer observer);

  model::EngineInfo info_;
  Mutex mu_;
  CondVar changed_;
  std::vector<std::unique_ptr<Sequence>> inbox_ ABSL_GUARDED_BY(mu_);
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool woken_ ABSL_GUARDED_BY(mu_) = false;
  bool idle_ ABSL_GUARDED_BY(mu_) = true;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace linnet::server
