#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "model/runtime/engine.h"
#include "server/schedule/batch_snapshot.h"
#include "server/schedule/batcher_options.h"
#include "server/schedule/encode_policy.h"
#include "server/schedule/pause_policy.h"
#include "server/schedule/sequence.h"
#include "server/schedule/shared_run.h"
#include "server/schedule/shed_policy.h"
#include "server/schedule/step_report.h"
#include "server/schedule/waiting_queue.h"

namespace linnet::server {

// The continuous batch: decides which sequences run in the engine and which wait.
//
// A waiting sequence is added between two steps, in the order of FairQueue, when its rows and
// encoder cache are free and EncodePolicy allows an encoder call. It is overtaken only while its
// call, its client or batch work holds max_rows_ratio of the rows, or PausePolicy makes work of a
// lower priority than interactive wait. A running sequence leaves the batch at the step in which it
// finishes, is cancelled or expires. ShedPolicy may end the waiting sequences of calls that have
// not started. A caller without rows is spared while a client holds more than its share.
//
// Identical sequences (Sequence::key) wait separately, each in its own turn, so none waits longer
// because of another. As soon as one of them is added, the others join its run (SharedRun), and
// so do those that arrive while it runs.
//
// Owns no thread, takes no lock and reads no clock; with a fake engine it is a deterministic
// function. Not thread-safe: only the scheduler's thread calls it.
class Batcher {
 public:
  // The engine outlives the batcher.
  Batcher(model::Engine& engine, const BatcherOptions& options);
  ~Batcher();  // ends all sequences with CANCELLED

  // Adds a sequence to the waiting queue; or to a run, or ends it, if there is a run or an answer
  // with its key. Takes ownership iff it returns OK; on error its sink was not called.
  absl::Status Add(std::unique_ptr<Sequence>& sequence, absl::Time now);

  // Ends cancelled and expired sequences, adds waiting ones, makes one engine step and ends the
  // sequences that finished in it. `clock` is read between these phases, so that the times of a
  // sequence do not include other phases.
  StepReport Step(absl::FunctionRef<absl::Time()> clock);

  // Uses the costs that a new engine has measured: one that is loaded on demand has none before.
  void TakeMeasuredCost(const model::EngineInfo& info);

  // Ends all sequences, with one status for the running and one for the waiting ones.
  void EndAll(const absl::Status& running, const absl::Status& waiting);
  // The request ids of the running calls, without duplicates.
  std::vector<std::string> RunningRequests() const;

  // Lists at most `max` sequences.
  BatchSnapshot Snapshot(int max) const;

  // What Add has counted since the last step: for a batcher that is idle, so makes none.
  StepReport TakeReport() { return std::exchange(since_step_, {}); }

  bool idle() const { return waiting_.empty() && running_.empty(); }
  int waiting() const { return static_cast<int>(waiting_.size()); }
  int running() const { return static_cast<int>(running_.size()); }  // in the engine
  // Running and waiting, with those that have joined a run.
  int sequences() const { return waiting() + running() + joined_; }

 private:
  // The waiting and running sequences of a call, client or priority.
  struct Held {
    int waiting = 0;
    int running = 0;
    int rows = 0;  // of the running ones
    bool empty() const { return waiting == 0 && running == 0; }
  };
  struct Call : Held {
    bool started = false;  // a sequence of it was added
  };
  // Rows and tokens that FindEligible has given away.
  struct Taken;

  void EndCancelledAndExpired(absl::Time now, StepReport& report);
  void Shed(absl::Time now, StepReport& report);
  // True if a client holds more rows than its equal share and one sequence more.
  bool SomeoneHoardsRows() const;
  // Returns the rows that an interactive sequence waits for.
  int AdmitEligible(absl::FunctionRef<absl::Time()> clock, StepReport& report);
  // Pauses and resumes runs as PausePolicy decides, and reports the rows of the step.
  void ChooseRuns(int wanted, absl::Time now, StepReport& report);
  void Advance(absl::FunctionRef<absl::Time()> clock, StepReport& report);
  // Returns the waiting sequences that fit into the engine now, in queue order. Sets `full` to the
  // next one after them, if it did not fit.
  std::vector<WaitingQueue::Ticket> FindEligible(const Sequence*& full, StepReport& report);
  // True if neither a limit on rows nor PausePolicy makes the next sequence wait. Moves the cursor
  // on otherwise.
  bool MayTake(WaitingQueue::Queue::Cursor& at, Taken& taken) const;
  void ObserveClasses(absl::Time now);
  int MaxRows() const { return static_cast<int>(options_.max_rows_ratio * engine_.info().rows); }
  // Moves the sequences to the running batch and encodes them as one batch, or as smaller ones if
  // the engine runs out of memory.
  void AdmitAndEncode(const std::vector<WaitingQueue::Ticket>& group,
                      absl::FunctionRef<absl::Time()> clock, StepReport& report);
  void Encode(std::span<const model::SequenceInput> inputs, absl::FunctionRef<absl::Time()> clock,
              StepReport& report);

  void AddRunningRequests(std::vector<std::string>& to) const;

  using Running = std::map<model::SequenceId, SharedRun>;
  // Joins a run or answers from the cache. False if there is neither.
  bool Share(std::unique_ptr<Sequence>& sequence, absl::Time now);
  void Join(SharedRun& run, std::unique_ptr<Sequence> sequence, absl::Time now, StepReport& report);
  // Updates calls_ for sequences that were taken out of the waiting queue; returns them.
  WaitingQueue::Sequences TakeOutOfQueue(WaitingQueue::Sequences sequences);
  // Returns the sequences that `take` takes out of a run, and takes the run out of the batch if
  // none is left.
  SharedRun::Sequences Leave(Running::iterator which,
                             absl::FunctionRef<SharedRun::Sequences(SharedRun&)> take);
  SharedRun::Sequences Remove(Running::iterator which);
  void Finish(Running::iterator which, model::SequenceEvent event, absl::Time now,
              StepReport& report);
  // Adds `change` to what the caller's call, client and priority hold.
  void Count(const Caller& caller, const Held& change);
  Held& held(Priority priority) { return classes_[static_cast<size_t>(priority)]; }
  const Held& held(Priority priority) const { return classes_[static_cast<size_t>(priority)]; }

  model::Engine& engine_;
  BatcherOptions options_;
  EncodePolicy policy_;
  ShedPolicy shed_;
  PausePolicy pause_;
  model::SequenceId next_id_ = 1;
  int64_t steps_ = 0;  // engine steps so far
  WaitingQueue waiting_;
  Running running_;
  std::map<std::string, model::SequenceId> running_keys_;
  int joined_ = 0;         // sequences of the runs beside the first of each
  StepReport since_step_;  // what Add has counted
  std::map<uint64_t, Call> calls_;
  std::map<std::string, Held> clients_;
  std::array<Held, 3> classes_ = {};
  int waiting_clients_ = 0;  // clients with waiting sequences
  bool hoarded_ = false;     // SomeoneHoardsRows, when a call would have been shed last
};

}  // namespace linnet::server
