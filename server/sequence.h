#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/runtime/engine.h"

namespace linnet::server {

// When a sequence passed each door.
struct SequenceTimes {
  absl::Time submitted = absl::InfinitePast();
  absl::Time seated = absl::InfinitePast();   // its source is about to be encoded
  absl::Time encoded = absl::InfinitePast();  // it takes part in the next step
  absl::Time finished = absl::InfinitePast();
};

struct SequenceResult {
  std::vector<model::Hypothesis> hypotheses;  // best first
  SequenceTimes times;
};

// Where a sequence ends. Done is called exactly once for every sequence that was taken, on the
// scheduler's thread, with no lock held; it must be quick and must not call the scheduler back.
class Sink {
 public:
  virtual ~Sink() = default;
  // By the same rules, any number of times before Done, if the input asks for report_stable: the
  // best hypothesis will start with these tokens, which those of the next call start with.
  virtual void Progress(std::vector<model::TokenId> /*stable*/) {}
  virtual void Done(absl::StatusOr<SequenceResult> result) = 0;
};

// One admitted source on its way through a batcher.
struct Sequence {
  model::SequenceInput input;
  absl::Time deadline = absl::InfiniteFuture();
  // Set by whoever no longer wants the result; the next step frees the rows and ends the sequence
  // with CANCELLED.
  std::shared_ptr<const std::atomic<bool>> cancelled;
  std::unique_ptr<Sink> sink;
  SequenceTimes times;
};

}  // namespace linnet::server
