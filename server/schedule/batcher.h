#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "model/runtime/engine.h"
#include "server/schedule/admit_policy.h"
#include "server/schedule/batch_snapshot.h"
#include "server/schedule/sequence.h"
#include "server/schedule/shed_policy.h"
#include "server/schedule/step_report.h"
#include "server/schedule/waiting_queue.h"

namespace linnet::server {

struct BatcherOptions {
  // Source tokens that are encoded between two steps at most; one sequence is always let in.
  int max_encode_tokens = 4096;
  // Sequences seated at once at most; 0 = as many as the engine's rows hold.
  int max_sequences = 0;
  // Of the engine's rows at most for one call, which for a document is all of its lines. One
  // sequence of a call is always let in.
  double max_call_rows_ratio = 0.75;
  AdmitOptions admit = {};
  ShedOptions shed = {};
};

// The continuous batch: which sequence sits in the engine, and which waits.
//
// It owns no thread, takes no lock and reads no clock; with a fake engine it is a deterministic
// function. Newcomers sit down in the order of FairQueue once their rows and memory are free (the
// first in line is overtaken only while its call has all the rows that a call may have) and
// AdmitPolicy finds that it is time, join the running batch at any step, and leave it at the step
// in which they finish, are cancelled or expire. Calls of which nothing was seated yet may be
// turned away again by ShedPolicy. Not thread-safe: only the scheduler's thread calls it.
class Batcher {
 public:
  // The engine outlives the batcher.
  Batcher(model::Engine& engine, const BatcherOptions& options);
  ~Batcher();  // ends whatever is left with CANCELLED

  // Takes the sequence iff OK is returned; on error the caller still owns it (its sink was not
  // called).
  absl::Status Add(std::unique_ptr<Sequence>& sequence, absl::Time now);

  // Drops the cancelled and expired, seats newcomers, makes one engine step and ends what finished.
  // `clock` is read between the phases, so that the times of a sequence are those of its own doors.
  StepReport Step(absl::FunctionRef<absl::Time()> clock);

  // Ends everything, waiting or seated, with this status.
  void EndAll(const absl::Status& status, absl::Time now);
  // The same with a status for those that run, and one for those that wait.
  void EndAll(const absl::Status& running, const absl::Status& waiting);
  // The request ids of the calls that run, each once.
  std::vector<std::string> RunningRequests() const;

  // With `most` sequences at most.
  BatchSnapshot Snapshot(int max) const;

  bool idle() const { return waiting_.empty() && running_.empty(); }
  int waiting() const { return static_cast<int>(waiting_.size()); }
  int running() const { return static_cast<int>(running_.size()); }

 private:
  // What one call has here.
  struct Call {
    int waiting = 0;
    int running = 0;
    int rows = 0;
    bool begun = false;  // something of it was seated
  };

  void DropUnwanted(absl::Time now, StepReport& report);
  void DropStale(absl::Time now, StepReport& report);
  void AdmitWaiting(absl::FunctionRef<absl::Time()> clock, StepReport& report);
  void Advance(absl::FunctionRef<absl::Time()> clock, StepReport& report);
  // Those of the waiting that have a place now, and whether somebody else found none.
  std::vector<WaitingQueue::Ticket> FindAdmissible(bool& full, StepReport& report);
  // Seats them and encodes them as one batch; as smaller ones, if there is not the memory for that.
  void AdmitGroup(const std::vector<WaitingQueue::Ticket>& group,
                  absl::FunctionRef<absl::Time()> clock, StepReport& report);
  void Encode(std::span<const model::SequenceInput> inputs, absl::FunctionRef<absl::Time()> clock,
              StepReport& report);

  using Running = std::map<model::SequenceId, std::unique_ptr<Sequence>>;
  // Those that were taken out of the queue leave their calls as well.
  WaitingQueue::Sequences Unqueued(WaitingQueue::Sequences sequences);
  std::unique_ptr<Sequence> Remove(Running::iterator which);
  void Forget(uint64_t call);  // if nothing of it is left here

  model::Engine& engine_;
  BatcherOptions options_;
  AdmitPolicy policy_;
  ShedPolicy shed_;
  model::SequenceId next_id_ = 1;
  int64_t steps_ = 0;  // of the engine, so far
  WaitingQueue waiting_;
  Running running_;
  std::map<uint64_t, Call> calls_;
};

}  // namespace linnet::server
