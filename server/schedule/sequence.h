#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/runtime/engine.h"
#include "server/base/caller.h"
#include "server/cache/answer_cache.h"
#include "server/schedule/cancellation.h"

namespace linnet::server {

// When a sequence entered each phase.
struct SequenceTimes {
  absl::Time submitted = absl::InfinitePast();
  absl::Time added = absl::InfinitePast();    // the encoder call of its source began
  absl::Time encoded = absl::InfinitePast();  // that call returned: it is part of the next step
  absl::Time finished = absl::InfinitePast();
};

// Where a result comes from.
enum class ResultOrigin {
  kEngine,     // a run of its own
  kCoalesced,  // the run of an identical sequence
  kCache,
};

struct SequenceResult {
  std::vector<model::Hypothesis> hypotheses;  // best first
  SequenceTimes times;
  std::vector<float> attention = {};  // SequenceEvent::attention
  ResultOrigin origin = ResultOrigin::kEngine;
};

// Receives the result of one sequence. Done is called exactly once for every sequence that the
// scheduler accepted, on the scheduler's thread and with no lock held. It must return quickly,
// throw nothing and not call the scheduler.
class Sink {
 public:
  virtual ~Sink() = default;
  // Reports the stable prefix: the best hypothesis will start with these tokens. Called under the
  // same rules as Done, any number of times before it, if the input sets report_stable. Each prefix
  // extends the one before.
  virtual void Progress(std::vector<model::TokenId> /*stable*/) {}
  virtual void Done(absl::StatusOr<SequenceResult> result) = 0;
};

// Source tokens plus max target tokens, language tokens included: the positions that one row of the
// sequence can take. An alignment is a second pass over the target, which keeps the rows for as
// long again.
inline int64_t MaxTokens(const model::SequenceInput& input) {
  return std::ssize(input.source) +
         (input.align ? 2 : 1) * (input.options.max_target_tokens + std::ssize(input.silent));
}
// The max cost of a sequence in token positions: MaxTokens times its rows.
inline int64_t MaxWork(const model::SequenceInput& input) {
  return MaxTokens(input) * model::RowsOf(input);
}

// One source being decoded. The batcher owns it from Add until its sink's Done.
struct Sequence {
  Sequence() = default;
  // Ends a sequence that was accepted and has not ended with INTERNAL: an exception has dropped it.
  ~Sequence();

  // Passes the result to the sink, once.
  void End(absl::StatusOr<SequenceResult> result);

  model::SequenceInput input;
  Caller caller;
  absl::Time deadline = absl::InfiniteFuture();
  // Once this is set, the next step frees the rows and ends the sequence with CANCELLED. Shared
  // between the sequences of a call and the code that may cancel the call.
  std::shared_ptr<Cancellation> cancelled;
  std::unique_ptr<Sink> sink;  // null once the sequence has ended
  bool accepted = false;       // by the scheduler
  // ModelCache::MakeKey. Sequences with equal keys run once and share the result. Empty: this one
  // shares nothing.
  std::string key;
  // Has the answers to sequences with a key, and gets this one. Outlives the sequence. Null: no
  // answers are kept.
  ModelCache* cache = nullptr;
  SequenceTimes times;
  // Sizes of the input, which the batcher fills in: the input itself moves to the engine.
  int64_t max_tokens = 0;
  int max_target_tokens = 0;
  int source_tokens = 0;
  int rows = 0;
  bool report_stable = false;  // of the input
  ResultOrigin origin = ResultOrigin::kEngine;

  int64_t work() const { return max_tokens * rows; }
};

}  // namespace linnet::server
