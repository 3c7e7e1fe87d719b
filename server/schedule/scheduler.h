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
#include "server/mutex.h"
#include "server/schedule/batcher.h"
#include "server/schedule/guarded_engine.h"
#include "server/schedule/restart_policy.h"

namespace linnet::server {

// How an engine is.
struct EngineHealth {
  enum class State {
    kUp,
    kDown,   // it failed, and could not be made again yet
    kStuck,  // it does not return from a call
  };
  State state = State::kUp;
  int restarts = 0;  // since the start
  absl::Status why;  // it last failed
};

// One inbox and one thread around a batcher: the shell that waits, so that the batcher need not.
//
// An engine that fails as a whole takes those who were seated with it, and is made again: at once,
// and if that fails as well after longer and longer waits, in which everybody is told to come back.
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
  // Thread-safe.
  absl::Status Check(const model::SequenceInput& input) const;

  // Thread-safe, never blocks for long: the thread holds the lock for a swap, and sleeps only while
  // it has nothing at all, so that a cancel flag or a deadline needs no wake-up: the next step sees
  // it. Takes the sequences, all or none, iff OK is returned; UnavailableError after Drain, and
  // while there is no engine.
  absl::Status Submit(std::vector<std::unique_ptr<Sequence>>& sequences);
  // Refuses newcomers from now on and returns when all that was taken has ended, or the deadline
  // has passed: then what is left ends with UNAVAILABLE.
  void Drain(absl::Time deadline);

  // To be called now and then, by one thread at a time. If the engine has been in one call for
  // longer than `patience`, ends all sequences with UNAVAILABLE and refuses newcomers, until the
  // call returns after all and the engine can be made again. Whoever destroys a scheduler whose
  // engine is stuck waits for that, too.
  void Watch(absl::Time now, absl::Duration patience);
  EngineHealth health() const;

 private:
  Scheduler() = default;
  void Run(const EngineFactory& factory, const BatcherOptions& options, const Observer& observer);
  void Serve(const EngineFactory& factory, const Observer& observer);
  // Makes a new engine in place of the broken one. False if there was none until it was told to
  // stop.
  bool Restart(const EngineFactory& factory);
  // Nobody is served until `retry` has passed: ends all there is.
  void GoDown(absl::Duration retry);

  // Written before started_, then read only.
  model::EngineInfo info_;
  std::unique_ptr<GuardedEngine> engine_;
  std::unique_ptr<Batcher> batcher_;  // the thread's; and Watch's, while that holds it back
  RestartPolicy restarts_;            // the thread's
  mutable Mutex mu_;
  CondVar changed_;
  std::optional<absl::Status> started_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Sequence>> inbox_ ABSL_GUARDED_BY(mu_);
  bool draining_ ABSL_GUARDED_BY(mu_) = false;   // refuse newcomers
  bool abandoned_ ABSL_GUARDED_BY(mu_) = false;  // end what is left
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;   // and leave the thread
  bool idle_ ABSL_GUARDED_BY(mu_) = true;        // nobody waits for the batcher
  EngineHealth health_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace linnet::server
