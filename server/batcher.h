#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "model/runtime/engine.h"
#include "server/admit_policy.h"
#include "server/sequence.h"

namespace linnet::server {

struct BatcherOptions {
  // Source tokens that are encoded between two steps at most; one sequence is always let in.
  int max_encode_tokens = 4096;
  // Sequences seated at once at most; 0 = as many as the engine's rows hold.
  int max_sequences = 0;
  AdmitOptions admit = {};
};

// What one Step did, for the metrics.
struct StepReport {
  int waiting = 0;                // after the step
  int remaining = 0;              // still seated after the step
  int sequences = 0;              // that took part in the step
  int rows = 0;                   // of the engine in use during the step
  int seated = 0;                 // newcomers
  int encoder_calls = 0;          // that they took
  int encoded_tokens = 0;         // of the newcomers, without padding
  int padded_encoded_tokens = 0;  // and with it
  int finished = 0;
  int cancelled = 0;
  int expired = 0;
  int failed = 0;
  int target_tokens = 0;                         // of the best hypotheses that finished
  bool stepped = false;                          // the engine made a step
  absl::Duration encode = absl::ZeroDuration();  // inside Engine::Seat
  absl::Duration decode = absl::ZeroDuration();  // inside Engine::Step
};

// The continuous batch: which sequence sits in the engine, and which waits.
//
// It owns no thread, takes no lock and reads no clock; with a fake engine it is a deterministic
// function. Newcomers sit down in order of arrival once their rows and memory are free (the first
// in line is never overtaken) and AdmitPolicy finds that it is time, join the running batch at any
// step, and leave it at the step in which they finish, are cancelled or expire. Not thread-safe:
// only the scheduler's thread calls it.
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

  bool idle() const { return waiting_.empty() && seated_.empty(); }
  int waiting() const { return static_cast<int>(waiting_.size()); }
  int seated() const { return static_cast<int>(seated_.size()); }

 private:
  void DropUnwanted(absl::Time now, StepReport& report);
  void SeatNewcomers(absl::FunctionRef<absl::Time()> clock, StepReport& report);
  void Advance(absl::FunctionRef<absl::Time()> clock, StepReport& report);
  // How many of the waiting, from the first in line, have a place now.
  int CountNewcomers();
  // Encodes them as one batch.
  void SeatGroup(std::vector<std::unique_ptr<Sequence>> group,
                 absl::FunctionRef<absl::Time()> clock, StepReport& report);

  model::Engine& engine_;
  BatcherOptions options_;
  AdmitPolicy policy_;
  model::SequenceId next_id_ = 1;
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::map<model::SequenceId, std::unique_ptr<Sequence>> seated_;
};

}  // namespace linnet::server
