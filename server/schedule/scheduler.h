#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/monotonic.h"
#include "server/base/mutex.h"
#include "server/schedule/batch_view.h"
#include "server/schedule/batcher_options.h"
#include "server/schedule/engine_life.h"
#include "server/schedule/engine_status.h"
#include "server/schedule/sequence.h"
#include "server/schedule/step_report.h"
#include "server/schedule/supervisor.h"

namespace linnet::server {

class Batcher;

// Runs a batcher and its engine on a thread of its own, with a thread-safe inbox for sequences.
//
// When the engine fails as a whole, its running sequences end with the error and the waiting ones
// with UNAVAILABLE. The engine is then rebuilt: at once, and if that fails with growing delays
// (RestartPolicy). Until it is rebuilt, Submit refuses. An engine that does not return from a call,
// that has lost its device or that cannot be rebuilt has failed for good: all its sequences end,
// and the Supervisor ends the process. So it is after an exception that nobody has caught on the
// scheduler's thread, because the state of the batcher is unknown then.
//
// With LoadOnDemand the engine is loaded and warmed up when the first sequences come, which wait in
// the inbox until then. A load that fails ends them with UNAVAILABLE and is not tried again for
// some time (RestartPolicy).
//
// Every sequence in the inbox holds a permit of Admission, so the inbox needs no limit of its own.
// The engine is built, used and destroyed on the one thread, because LibTorch's settings are per
// thread.
class Scheduler final : public Supervised {
 public:
  using EngineFactory = EngineLife::Factory;
  // Called after every step, on the scheduler's thread, with its report and its duration including
  // the sinks. When sequences end without a step, it is called with a duration of zero; after a
  // stall that happens on the supervisor's thread, and during a load on that of Maintain or Drain.
  using Observer = std::function<void(const StepReport&, absl::Duration step)>;

  // Starts the thread, builds the engine on it and waits until that is done. Returns the factory's
  // error if it fails. `model` names the engine in logs and in EngineFailure.
  static absl::StatusOr<std::unique_ptr<Scheduler>> Start(EngineFactory factory,
                                                          const BatcherOptions& options,
                                                          Observer observer,
                                                          const Supervision& supervision = {},
                                                          const std::string& model = "",
                                                          const LoadOnDemand& demand = {});
  // Ends all sequences with UNAVAILABLE and joins the thread: with a stalled engine it blocks until
  // the engine's call returns.
  ~Scheduler() override;
  // Asks the thread to end, as the destructor does, and waits for that until the deadline. False if
  // the destructor would still block: building an engine, for one, cannot be interrupted.
  bool Stop(MonotonicTime deadline);

  const model::EngineInfo& engine_info() const { return life_.engine()->info(); }
  // Thread-safe.
  absl::Status Check(const model::SequenceInput& input) const {
    return life_.engine()->Check(input);
  }

  // Thread-safe; blocks for microseconds at most, because the scheduler's thread holds the lock
  // only for a swap. Takes all sequences iff it returns OK, otherwise none. Returns UNAVAILABLE
  // after Drain and while there is no engine. Cancellations and deadlines of submitted sequences
  // need no wake-up: the thread sleeps only while it has no sequences, and each step checks them.
  absl::Status Submit(std::vector<std::unique_ptr<Sequence>>& sequences);
  // Refuses new sequences from now on, and returns when all submitted ones have ended. At the
  // deadline the remaining ones end with UNAVAILABLE; those that wait for a load, on this thread.
  void Drain(MonotonicTime deadline);

  // For the supervisor: if a call of the engine exceeds stall_timeout, or building one exceeds
  // load_timeout, ends all sequences and marks the engine as failed for good.
  void EndIfStalled(MonotonicTime now) noexcept override;
  void ForgiveGap(absl::Duration gap, MonotonicTime now) override {
    life_.detector().Forgive(gap, now);
  }
  EngineHealth health() const;
  LoadStats load_stats() const;

  // It is loaded at start and stays.
  bool pinned() const { return demand_.pinned; }
  // For EngineMemory, with its lock held. When the last sequence came, if the engine is loaded,
  // holds no sequences and may be unloaded.
  std::optional<MonotonicTime> idle_since() const;
  // Unloads the engine soon. False if that is not possible now.
  bool Unload();

  std::optional<EngineFailure> failure() const override;

  // Passes a snapshot with at most `max` sequences to the callback between two steps, on the
  // scheduler's thread; the rules of Sink apply to the callback. If the engine stays in one call
  // for two seconds or fails for good, Maintain answers instead, without sequences. While there is
  // no engine, an empty snapshot is passed at once.
  void ShowBatch(int max, BatchView::Callback callback);
  // Call it periodically, from any thread. While the engine stays in one call, and once it has
  // failed for good, answers the requests for snapshots; while it is being loaded, ends waiting
  // sequences that are cancelled or expired.
  void Maintain(MonotonicTime now);

 private:
  // From start to end; no phase comes back.
  enum class Phase {
    kServing,
    kDraining,  // Submit refuses
    kEnding,    // and the thread ends all sequences
    kStopping,  // and returns
  };
  Scheduler(EngineFactory factory, const BatcherOptions& options, Observer observer,
            const Supervision& supervision, const std::string& model, const LoadOnDemand& demand);
  // These run on the scheduler's thread.
  void Run();
  absl::Status TryBuildFirst();
  void Serve();
  // Returns when HasWork. While it sleeps, the engine is idle for the supervisor.
  void WaitForWork();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !idle_ || !inbox_.empty() || view_.asked() || unload_ || phase_ == Phase::kStopping;
  }
  // Makes a step. Returns false as Rebuild does.
  bool Step();

  // The life of the engine, on the scheduler's thread (scheduler_engine.cc).
  absl::Status BuildFirst();
  // Replaces the broken engine by a new one. Returns false if the engine has failed for good or the
  // scheduler is stopping.
  bool Rebuild(absl::Status why, std::vector<std::string> request_ids);
  // On demand. Load returns when the engine is loaded, or when no sequence waits for it any longer.
  // Both return false as Rebuild does.
  bool Load();
  bool WarmUp();
  int64_t BytesToReserve() const;
  // Waits for room. False if no sequence waits any longer.
  bool ReserveMemory();
  // Builds the engine and counts its memory.
  absl::StatusOr<std::unique_ptr<model::Engine>> BuildMeasured();
  void Loaded(MonotonicTime began);
  void LoadFailed(const absl::Status& why);
  void UnloadNow();

  // These run on any thread.
  void Enter(Phase phase) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends the sequences of the inbox that are cancelled or expired.
  void EndUnwanted();
  void EndInbox(const absl::Status& status);
  bool empty() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return idle_ && inbox_.empty(); }
  // These run on the scheduler's thread or, after a stall, on the supervisor's.
  // Marks the engine as failed for good and ends all sequences. Without memory for the error that
  // `describe` returns, it fails without one. Requests for snapshots are left to Maintain, because
  // their callbacks write to a connection and to the log, for which the supervisor must not wait.
  void FailForGood(absl::FunctionRef<absl::Status()> describe) noexcept;
  // Ends all sequences of the batch and of the inbox.
  void EndAll(const absl::Status& running, const absl::Status& waiting);

  const BatcherOptions options_;
  const Observer observer_;
  Supervisor* const supervisor_;
  const std::string model_;
  const LoadOnDemand demand_;
  // Used by the scheduler's thread alone; once a call has stalled, by the supervisor's thread
  // alone. Set before started_.
  EngineLife life_;
  std::unique_ptr<Batcher> batcher_;
  BatchView view_;

  mutable Mutex mu_;
  CondVar changed_;
  std::optional<absl::Status> started_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Sequence>> inbox_ ABSL_GUARDED_BY(mu_);
  Phase phase_ ABSL_GUARDED_BY(mu_) = Phase::kServing;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;  // the thread has nothing left to do
  bool idle_ ABSL_GUARDED_BY(mu_) = true;    // the batcher holds no sequences
  EngineStatus status_ ABSL_GUARDED_BY(mu_);
  bool unload_ ABSL_GUARDED_BY(mu_) = false;  // the thread unloads the engine if it is still idle
  std::thread thread_;                        // last: it uses all of the above
};

}  // namespace linnet::server
