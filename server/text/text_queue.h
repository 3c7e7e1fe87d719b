#pragma once

#include <cstdint>
#include <optional>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/schedule/fair_queue.h"

namespace linnet::server {

// The two stages of a call that work on its texts: splitting and tokenising them before the engine,
// and putting the answer together after it.
enum class TextStage { kPrepare, kAnswer };

// What a call wants done in one turn.
struct TextJob {
  TextStage stage = TextStage::kPrepare;
  Flow flow = {};
  uint64_t call = 0;
  int64_t bytes = 1;  // of text that the turn reads or writes, which is what it costs
  absl::AnyInvocable<void()> run = nullptr;
  // Called after `run`, on the same thread, if that threw. It fails the call.
  absl::AnyInvocable<void(absl::Status)> fail = nullptr;
};

// In which order jobs have their turns, and how long that takes. An answer goes before any text
// that is to be prepared, since it gives memory back; within a stage clients take turns by
// FairQueue, at the cost of their bytes. Plain and deterministic: time is passed in. Not
// thread-safe.
class TextQueue {
 public:
  void Push(TextJob job);
  std::optional<TextJob> Next();
  bool empty() const { return prepare_.jobs.empty() && answer_.jobs.empty(); }
  // How long a job of so many bytes took.
  void Took(TextStage stage, int64_t bytes, absl::Duration time);

  // How long a job that came now would take to be done by so many threads, waiting included, if no
  // other flow comes. Zero as long as nothing is known.
  absl::Duration TimeFor(TextStage stage, const Flow& flow, int64_t bytes, int threads) const;

 private:
  struct Stage {
    FairQueue<TextJob> jobs;
    // The past counts for less and less.
    double seconds = 0;
    double bytes = 0;
    double seconds_per_byte() const { return bytes > 0 ? seconds / bytes : 0; }
  };
  Stage& stage(TextStage which) { return which == TextStage::kAnswer ? answer_ : prepare_; }
  const Stage& stage(TextStage which) const {
    return which == TextStage::kAnswer ? answer_ : prepare_;
  }

  Stage prepare_;
  Stage answer_;
};

}  // namespace linnet::server
