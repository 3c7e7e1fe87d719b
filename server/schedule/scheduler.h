#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/monotonic.h"
#include "server/base/mutex.h"
#include "server/schedule/batcher.h"
#include "server/schedule/guarded_engine.h"
#include "server/schedule/restart_policy.h"
#include "server/schedule/stall_detector.h"
#include "server/schedule/supervisor.h"

namespace linnet::server {

// How an engine is.
struct EngineHealth {
  enum class State {
    kUp,
    kDown,    // it failed and is being made again
    kFailed,  // it stalled, lost its device or could not be made again: a new process is needed
  };
  State state = State::kUp;
  int restarts = 0;  // since the start
  absl::Status why;  // it last failed
};

// What an engine may take, and who looks whether it does.
struct Supervision {
  absl::Duration stall_timeout = absl::InfiniteDuration();  // of one encoder call or step
  absl::Duration load_timeout = absl::InfiniteDuration();   // of making an engine
  int max_failed_rebuilds = 5;                              // in a row: RestartPolicy
  Supervisor* supervisor = nullptr;                         // outlives the scheduler
};

// One inbox and one thread around a batcher: the shell that waits, so that the batcher need not.
//
// An engine that fails as a whole takes the sequences that it was decoding with it. Those that wait
// end with UNAVAILABLE, and the engine is made again: at once, and if that fails as well after
// longer and longer waits. Meanwhile nothing is taken. An engine that does not return from a call,
// that has lost its device or that cannot be made again has failed for good: its sequences end, and
// the Supervisor ends the process.
//
// Everything in the inbox holds a permit of Admission, so it needs no limit of its own. An engine
// is made, used and destroyed on one thread, because LibTorch's settings belong to a thread.
class Scheduler {
 public:
  using EngineFactory = std::function<absl::StatusOr<std::unique_ptr<model::Engine>>()>;
  // Told of every step, on the thread that made it: what it did, and how long all of it took, the
  // sinks included. After everything was ended without a step there is a report as of no time; if
  // that was because of a stall, on the supervisor's thread.
  using Observer = std::function<void(const StepReport&, absl::Duration step)>;

  // Starts the thread, makes the engine there and waits until it is ready; the factory's error if
  // it is not. `model` is what the supervisor calls it.
  static absl::StatusOr<std::unique_ptr<Scheduler>> Start(EngineFactory factory,
                                                          const BatcherOptions& options,
                                                          Observer observer,
                                                          const Supervision& supervision = {},
                                                          const std::string& model = "");
  // Ends what is left with UNAVAILABLE and joins the thread: whoever destroys a scheduler with an
  // engine that has stalled waits until that returns.
  ~Scheduler();

  const model::EngineInfo& engine_info() const { return engine_->info(); }
  // Thread-safe.
  absl::Status Check(const model::SequenceInput& input) const { return engine_->Check(input); }

  // Thread-safe, never blocks for long: the thread holds the lock for a swap, and sleeps only while
  // it has nothing at all, so that a cancel flag or a deadline needs no wake-up: the next step sees
  // it. Takes the sequences, all or none, iff OK is returned; UnavailableError after Drain, and
  // while there is no engine.
  absl::Status Submit(std::vector<std::unique_ptr<Sequence>>& sequences);
  // Refuses new sequences from now on and returns when all that was taken has ended, or the
  // deadline has passed: then what is left ends with UNAVAILABLE.
  void Drain(absl::Time deadline);

  // The supervisor's: if a call of the engine or the making of one takes longer than it may, ends
  // all sequences, and the engine has failed.
  void EndIfStalled(MonotonicTime now);
  EngineHealth health() const;
  // If the engine has failed for good.
  std::optional<EngineFailure> failure() const;

  using SnapshotCallback = absl::AnyInvocable<void(const BatchSnapshot&)>;
  // Shows the batch, with `most` sequences at most, between two steps: on the scheduler's thread,
  // by the rules of a sink. Without a sequence, from ShowLongCall, once the engine has been in one
  // call for two seconds; at once, and empty, while there is no engine.
  void ShowBatch(int max, SnapshotCallback taker);
  // To be called now and then.
  void ShowLongCall(MonotonicTime now);

 private:
  struct SnapshotRequest {
    int max;
    SnapshotCallback taker;
  };

  Scheduler(EngineFactory factory, const BatcherOptions& options, Observer observer,
            const Supervision& supervision, const std::string& model);
  // The thread's.
  void Run();
  absl::Status MakeFirst();
  void Serve();
  // Makes a new engine in place of the one that is broken. False if there is none and there will be
  // none.
  bool Rebuild(absl::Status why, std::vector<std::string> request_ids);
  absl::StatusOr<std::unique_ptr<model::Engine>> Make();
  // Nothing is taken from now on.
  void GoDown(EngineHealth::State state, const absl::Status& why,
              std::vector<std::string> request_ids);
  // Ends all there is, in the batch and in the inbox.
  void EndWhatIsLeft(const absl::Status& running, const absl::Status& waiting);
  std::vector<SnapshotRequest> TakeOrders();

  const EngineFactory factory_;
  const BatcherOptions options_;
  const Observer observer_;
  const Supervision supervision_;
  const std::string model_;
  StallDetector detector_;
  // The thread's; once a call has stalled, the supervisor's. Written before started_.
  std::unique_ptr<GuardedEngine> engine_;
  std::unique_ptr<Batcher> batcher_;
  RestartPolicy restarts_;  // the thread's

  mutable Mutex mu_;
  CondVar changed_;
  std::optional<absl::Status> started_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Sequence>> inbox_ ABSL_GUARDED_BY(mu_);
  bool draining_ ABSL_GUARDED_BY(mu_) = false;  // take nothing more
  bool ending_ ABSL_GUARDED_BY(mu_) = false;    // end what is left
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;  // and leave the thread
  bool idle_ ABSL_GUARDED_BY(mu_) = true;       // nothing waits for the batcher
  EngineHealth health_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> failed_requests_ ABSL_GUARDED_BY(mu_);  // of the last failure
  std::vector<SnapshotRequest> orders_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace linnet::server
