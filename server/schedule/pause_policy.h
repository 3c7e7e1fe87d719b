#pragma once

#include "absl/time/time.h"
#include "server/schedule/recent_ratio.h"
#include "server/schedule/step_cost.h"

namespace linnet::server {

// Decides which running sequences of lower priority than interactive a step decodes, and how much
// of that lower work is admitted, so that interactive calls are nearly as fast as alone. It learns
// how long a step takes by its rows, an encoder call by its tokens, and an interactive sequence.
//
// - While an interactive sequence runs, lower work gets a fifth of the time (kShare). Its sequences
//   are decoded, normal before batch and oldest first, as long as the step owes them time.
// - While an interactive sequence waits for rows, the oldest lower sequences that hold these rows
//   are decoded, so that they end soonest.
// - If an interactive sequence was there within kRecently, the encoder call of lower work and its
//   part of a step take at most half of the time of an interactive sequence each. The next one
//   waits for half of both on average.
// - Otherwise all are decoded.
//
// Each limit is exceeded by at most one sequence, so none starves. Where many rows take hardly
// longer than few, as on a GPU, all are decoded in every case. Deterministic: time is passed in.
// Not thread-safe: the batcher owns it.
class PausePolicy {
 public:
  // The time of lower work by that of the steps of interactive sequences, as the classes' weights.
  static constexpr double kShare = 0.25;
  // Somebody who has read an answer asks again within this time.
  static constexpr absl::Duration kRecently = absl::Minutes(1);

  // The classes above batch that are there.
  struct Classes {
    bool normal = false, interactive_waits = false, interactive_runs = false;
  };
  // Call it before admissions and after them.
  void Observe(const Classes& classes, absl::Time now);

  // True while, and for some time after, a higher class is there: batch work leaves rows free.
  bool leaves_rows() const { return leaves_rows_; }
  // True if another lower sequence may be added. `rows` are held, `lower_rows` of them by lower
  // sequences, and `tokens` source tokens of lower sequences are added before it.
  bool Admits(int rows, int lower_rows, int tokens) const;
  // A lower sequence of so many source tokens was added.
  void Added(int tokens);

  // Starts to choose the sequences of a step. `rows` of interactive ones are decoded; another
  // interactive sequence waits for `wanted` rows.
  void Choose(int rows, int wanted);
  // True if the step decodes the next lower sequence, which has so many rows.
  bool Decodes(int rows);

  void RecordStep(int rows, absl::Duration time, absl::Time now) { steps_.Record(rows, time, now); }
  void RecordEncoding(int tokens, absl::Duration time);
  void RecordInteractive(absl::Duration time);

 private:
  // Max time of an encoder call, and by which lower work lengthens a step, while no interactive
  // sequence runs.
  absl::Duration Target() const;
  absl::Duration EncodingTime(int tokens) const;

  StepCost steps_;
  RecentRatio token_seconds_, interactive_seconds_;
  // When an interactive sequence was there, and one of any higher class.
  absl::Time interactive_ = absl::InfinitePast(), higher_ = absl::InfinitePast();
  bool waits_ = false, runs_ = false, recently_ = false, leaves_rows_ = false;
  absl::Duration left_;  // for lower work; below zero, it has had too much
  int rows_ = 0;         // of the step so far
  int wanted_ = 0;
};

}  // namespace linnet::server
