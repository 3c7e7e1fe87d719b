#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/batcher.h"
#include "server/mutex.h"

namespace linnet::server {

// One inbox and one thread around a batcher: the shell that waits, so that the batcher need not.
//
// Everything in the inbox holds a permit of Admission, so it needs no limit of its own. The engine
// is made, used and destroyed on the scheduler's thread, because LibTorch's settings belong to a
// thread.
class Scheduler {
 public:
  using EngineFactory = std::function<absl::StatusOr<std::unique_ptr<model::Engine>>()>;
  // Told of every step, on the scheduler's thread: what it did, and how long all of it took, the
  // sinks included.
  using Observer = std::function<void(const StepReport&, absl::Duration step)>;

  // Starts the thread, makes the engine there and waits until it is ready; the factory's error if
  // it is not.
  static absl::StatusOr<std::unique_ptr<Scheduler>> Start(EngineFactory factory,
                                                          const BatcherOptions& options,
                                                          Observer observer);
  // Ends what is left with UNAVAILABLE and joins the thread.
  ~Scheduler();

  const model::EngineInfo& engine_info() const { return info_; }
  // Thread-safe: the engine's checks read only what never changes.
  absl::Status Check(const model::SequenceInput& input) const;

  // Thread-safe, never blocks for long: the thread holds the lock for a swap, and sleeps only while
  // it has nothing at all, so that a cancel flag or a deadline needs no wake-up: the next step sees
  // it. Takes the sequences, all or none, iff OK is returned; UnavailableError after Drain.
  absl::Status Submit(std::vector<std::unique_ptr<Sequence>>& sequences);
  // Refuses newcomers from now on and returns when all that was taken has ended, or the deadline
  // has passed: then what is left ends with UNAVAILABLE.
  void Drain(absl::Time deadline);

 private:
  Scheduler() = default;
  void Run(const EngineFactory& factory, const BatcherOptions& options, const Observer& observer);
  void Serve(model::Engine& engine, const BatcherOptions& options, const Observer& observer);

  model::EngineInfo info_;                 // written before started_, then read only
  const model::Engine* engine_ = nullptr;  // likewise; for Check alone
  Mutex mu_;
  CondVar changed_;
  std::optional<absl::Status> started_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Sequence>> inbox_ ABSL_GUARDED_BY(mu_);
  bool draining_ ABSL_GUARDED_BY(mu_) = false;   // refuse newcomers
  bool abandoned_ ABSL_GUARDED_BY(mu_) = false;  // end what is left
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;   // and leave the thread
  bool idle_ ABSL_GUARDED_BY(mu_) = true;        // the batcher holds nothing
  std::thread thread_;                           // last: it uses all of the above
};

}  // namespace linnet::server
