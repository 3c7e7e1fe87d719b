#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
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
    kStuck,  // it does not return from a call, and there may be no other in its place
  };
  State state = State::kUp;
  int restarts = 0;   // since the start
  int abandoned = 0;  // engines that were replaced while they did not return, and still do not
  absl::Status why;   // it last failed
};

// One inbox and one thread around a batcher: the shell that waits, so that the batcher need not.
//
// An engine that fails as a whole takes those who were seated with it, and is made again: at once,
// and if that fails as well after longer and longer waits, in which everybody is told to come back.
// One that does not return from a call is abandoned with its thread and its batch, and another is
// made on a thread of its own.
//
// Everything in the inbox holds a permit of Admission, so it needs no limit of its own. An engine
// is made, used and destroyed on one thread, because LibTorch's settings belong to a thread.
class Scheduler {
 public:
  using EngineFactory = std::function<absl::StatusOr<std::unique_ptr<model::Engine>>()>;
  // Told of every step, on the thread that made it: what it did, and how long all of it took, the
  // sinks included. Of a step that did not return Watch tells, on its thread; and after everything
  // was ended without one there is a report as of no time.
  using Observer = std::function<void(const StepReport&, absl::Duration step)>;

  // Starts the thread, makes the engine there and waits until it is ready; the factory's error if
  // it is not.
  static absl::StatusOr<std::unique_ptr<Scheduler>> Start(EngineFactory factory,
                                                          const BatcherOptions& options,
                                                          Observer observer);
  // Ends what is left with UNAVAILABLE and joins the threads: whoever destroys a scheduler with an
  // engine that does not return waits for it (see stuck).
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
  // longer than `patience`, ends all sequences with UNAVAILABLE and makes another engine in its
  // place, as long as no more than `most_abandoned` are left behind. Beyond that newcomers are
  // refused until the call returns after all.
  void Watch(absl::Time now, absl::Duration patience, int most_abandoned = 0);
  EngineHealth health() const;
  // Some engine does not return.
  bool stuck() const;

  using PictureTaker = absl::AnyInvocable<void(const BatchPicture&)>;
  // Shows the batch, with `most` sequences at most, between two steps: on the scheduler's thread,
  // by the rules of a sink. From Watch, without a sequence, once the engine has been in one call
  // for two seconds; at once, and empty, while there is no engine.
  void ShowBatch(int most, PictureTaker taker);

 private:
  struct PictureOrder {
    int most;
    PictureTaker taker;
  };

  // A thread with an engine and the batch in it.
  struct Worker {
    std::unique_ptr<GuardedEngine> engine;
    std::unique_ptr<Batcher> batcher;  // the thread's; and Watch's, while that holds it back
    bool abandoned = false;            // guarded by mu_: another serves in its place
    bool ended = false;                // guarded by mu_: nothing is left but to join the thread
    std::thread thread;
  };

  Scheduler(EngineFactory factory, const BatcherOptions& options, Observer observer)
      : factory_(std::move(factory)), options_(options), observer_(std::move(observer)) {}
  std::shared_ptr<Worker> worker() const;
  void StartThread(const std::shared_ptr<Worker>& worker, bool first);
  // The first one's thread, until it has an engine.
  absl::Status MakeFirst(Worker& worker);
  void Serve(Worker& worker);
  // When it serves no more.
  void Leave(Worker& worker);
  // Makes a new engine in place of the one that is broken. False if there was none until it was
  // told to stop.
  bool Restart(Worker& worker, absl::Status why);
  // Ends all that the batch has.
  void EndAll(Worker& worker, const absl::Status& status);
  // Nobody is served until `retry` has passed: ends all there is.
  void GoDown(Worker& worker, absl::Duration retry);
  std::vector<PictureOrder> TakeOrders();
  // Joins the threads of abandoned workers whose calls have returned.
  void Reap();

  const EngineFactory factory_;
  const BatcherOptions options_;
  const Observer observer_;
  model::EngineInfo info_;  // written before started_, then read only
  mutable Mutex mu_;
  CondVar changed_;
  std::optional<absl::Status> started_ ABSL_GUARDED_BY(mu_);
  RestartPolicy restarts_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Sequence>> inbox_ ABSL_GUARDED_BY(mu_);
  bool draining_ ABSL_GUARDED_BY(mu_) = false;  // refuse newcomers
  bool ending_ ABSL_GUARDED_BY(mu_) = false;    // end what is left
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;  // and leave the thread
  bool idle_ ABSL_GUARDED_BY(mu_) = true;       // nobody waits for the batcher
  EngineHealth health_ ABSL_GUARDED_BY(mu_);
  std::vector<PictureOrder> orders_ ABSL_GUARDED_BY(mu_);
  // Shared with whoever asks its engine something while it is replaced.
  std::shared_ptr<Worker> worker_ ABSL_GUARDED_BY(mu_);
  std::vector<std::shared_ptr<Worker>> abandoned_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
