#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/runtime/engine.h"
#include "server/base/caller.h"
#include "server/schedule/cancellation.h"

namespace linnet::server {

// When a sequence passed each door.
struct SequenceTimes {
  absl::Time submitted = absl::InfinitePast();
  absl::Time admitted = absl::InfinitePast();  // its source is about to be encoded
  absl::Time encoded = absl::InfinitePast();   // it takes part in the next step
  absl::Time finished = absl::InfinitePast();
};

struct SequenceResult {
  std::vector<model::Hypothesis> hypotheses;  // best first
  SequenceTimes times;
  std::vector<float> attention = {};  // SequenceEvent::attention
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

// Source and most target tokens: in how many positions of a row the sequence can take part. To be
// aligned it goes through its target twice, and keeps its rows as long.
inline int64_t MaxTokens(const model::SequenceInput& input) {
  return std::ssize(input.source) + (input.align ? 2 : 1) * input.options.max_target_tokens;
}
// What it costs at most: that for each of its rows.
inline int64_t WorkOf(const model::SequenceInput& input) {
  return MaxTokens(input) * model::RowsOf(input);
}

// One admitted source on its way through a batcher.
struct Sequence {
  model::SequenceInput input;
  Caller caller;
  absl::Time deadline = absl::InfiniteFuture();
  // Once it is cancelled, the next step frees the rows and ends the sequence with CANCELLED. Shared
  // by the sequences of a call and whoever may cancel it.
  std::shared_ptr<Cancellation> cancelled;
  std::unique_ptr<Sink> sink;
  SequenceTimes times;
  // Of the input, which the engine gets: the batcher fills them in.
  int64_t max_tokens = 0;
  int source_tokens = 0;
  int rows = 0;
  int64_t first_step = 0;  // of the batcher, when it was seated

  int64_t work() const { return max_tokens * rows; }
};

}  // namespace linnet::server
