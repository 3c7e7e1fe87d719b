#pragma once

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
// call already holds max_call_rows_ratio of the rows. A running sequence leaves the batch at the
// step in which it finishes, is cancelled or expires. ShedPolicy may end the waiting sequences of
// calls that have not started.
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
  // The waiting and running sequences of one call.
  struct Call {
    int waiting = 0;
    int running = 0;
    int rows = 0;          // of the running ones
    bool started = false;  // a sequence of it was added
  };

  void EndCancelledAndExpired(absl::Time now, StepReport& report);
  void Shed(absl::Time now, StepReport& report);
  void AdmitWaiting(absl::FunctionRef<absl::Time()> clock, StepReport& report);
  void Advance(absl::FunctionRef<absl::Time()> clock, StepReport& report);
  // Returns the waiting sequences that fit into the engine now, in queue order. Sets `full` if the
  // next one after them did not fit.
  std::vector<WaitingQueue::Ticket> FindEligible(bool& full, StepReport& report);
  // Moves the sequences to the running batch and encodes them as one batch, or as smaller ones if
  // the engine runs out of memory.
  void AdmitGroup(const std::vector<WaitingQueue::Ticket>& group,
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
  void EraseIfEmpty(uint64_t call);

  model::Engine& engine_;
  BatcherOptions options_;
  EncodePolicy policy_;
  ShedPolicy shed_;
  model::SequenceId next_id_ = 1;
  int64_t steps_ = 0;  // engine steps so far
  WaitingQueue waiting_;
  Running running_;
  std::map<std::string, model::SequenceId> running_keys_;
  int joined_ = 0;         // sequences of the runs beside the first of each
  StepReport since_step_;  // what Add has counted
  std::map<uint64_t, Call> calls_;
};

}  // namespace linnet::server
