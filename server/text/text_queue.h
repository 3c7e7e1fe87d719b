#pragma once

#include <cstdint>
#include <optional>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/monotonic.h"
#include "server/schedule/fair_queue.h"
#include "server/schedule/recent_ratio.h"

namespace linnet::server {

// The two stages of a call on the text pool: splitting and tokenising before the engine, and
// assembling the answer after it.
enum class TextStage { kPrepare, kAnswer };

// The cost of preparing a text is its bytes and a fixed part. A job, which is never interrupted,
// prepares or assembles about kBytesPerTurn of it; longer texts take several.
constexpr int64_t kBytesPerTurn = 4096;
constexpr int64_t kBytesPerText = 256;

// One job of a call.
struct TextJob {
  TextStage stage = TextStage::kPrepare;
  Flow flow = {};
  uint64_t call = 0;
  int64_t bytes = 1;  // of text that the job reads or writes, and kBytesPerText: its cost
  // Not the first job of its stage. Further jobs of an answer take turns with texts to prepare.
  bool continues = false;
  absl::AnyInvocable<void()> run = nullptr;
  // Called after `run`, on the same thread, if that threw; fails the call.
  absl::AnyInvocable<void(absl::Status)> fail = nullptr;
};

// Orders the jobs of the text pool and estimates how long they take. Answers go before texts to
// prepare, because an answer releases memory, but a long one only for its first job. Within a stage
// FairQueue orders the clients, at the cost of their bytes. Deterministic: time is passed in. Not
// thread-safe.
class TextQueue {
 public:
  void Push(TextJob job);
  std::optional<TextJob> Next();
  bool empty() const { return prepare_.jobs.empty() && answer_.jobs.empty(); }
  // Records the duration of a job of that many bytes, which ended now.
  void RecordCompletion(TextStage stage, int64_t bytes, absl::Duration time, MonotonicTime now);

  // Estimates the time until a job that arrived now would be done by `threads` threads, waiting
  // included, if no other flow arrives. Zero while no speed is known.
  //
  // The estimate of a stage without jobs decays. So one that is too high, and by which calls are
  // refused, does not last: it is corrected by the next call that is not refused.
  absl::Duration EstimateTime(TextStage stage, const Flow& flow, int64_t bytes, int threads,
                              MonotonicTime now) const;

 private:
  struct Stage {
    // Weight of what is known at the end of the last job, now.
    double Decay(MonotonicTime now) const;

    FairQueue<TextJob> jobs;
    RecentRatio seconds_per_byte;
    MonotonicTime last;  // end of the last job
  };
  Stage& stage(TextStage which) { return which == TextStage::kAnswer ? answer_ : prepare_; }
  const Stage& stage(TextStage which) const {
    return which == TextStage::kAnswer ? answer_ : prepare_;
  }

  Stage prepare_;
  Stage answer_;
};

}  // namespace linnet::server
