#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "server/schedule/batcher.h"
#include "server/schedule/caller.h"
#include "server/schedule/margin.h"

namespace linnet::server {

// How long a call will take, as far as can be said when it comes.
struct Estimate {
  absl::Duration time = absl::ZeroDuration();  // zero: nothing is known
  absl::Duration wait = absl::ZeroDuration();  // of it, for what goes before
  bool waits = false;                          // it will have to wait for a place
};

// What one model has to do, and how fast it does it: from that, when a call would be done.
//
// Plain and deterministic: it reads no clock. Not thread-safe.
class Workload {
 public:
  // Work that was admitted, and that has ended.
  void Add(const Caller& caller, int64_t tokens);
  void Remove(const Caller& caller, int64_t tokens);
  // A turn of the model's scheduler and how long it took.
  void StepMade(const StepReport& report, absl::Duration cycle);

  // How long a call with so many tokens of work would take from now, whose longest sequence has
  // `longest` tokens (source and most target). Zero as long as nothing is known.
  //
  // While nobody waits for a place, nor will once all who were let in have come to theirs, that is
  // the time of its longest sequence. Otherwise it waits until what goes before it is finished, and
  // is not done before all of its own is.
  Estimate TimeToFinish(const Caller& caller, int64_t tokens, int64_t longest) const;
  // How much time a call of which this is expected must have, to be let in: kMostWait of it at most
  // may be waited for.
  absl::Duration TimeNeeded(const Estimate& estimate) const {
    return std::max(estimate.time, estimate.wait / kMostWait) * margin(estimate);
  }
  // What an estimate is to be multiplied by to be kept to, and what it came to.
  double margin(const Estimate& estimate) const {
    return (estimate.waits ? waiting_ : alone_).ratio();
  }
  void Took(const Estimate& estimate, absl::Duration actual) {
    (estimate.waits ? waiting_ : alone_).Took(estimate.time, actual);
  }
  void CutOff(const Estimate& estimate, absl::Duration after) {
    (estimate.waits ? waiting_ : alone_).CutOff(estimate.time, after);
  }
  // In which so many tokens of work are finished by a full engine. Zero as long as nothing is
  // known.
  absl::Duration TimeFor(int64_t tokens) const;

  int64_t tokens() const { return tokens_; }

 private:
  // If all of it could be, short texts, which can wait the longest, would leave no place to long
  // ones.
  static constexpr double kMostWait = 0.75;

  // A ratio of two sums of which the past counts for less and less.
  struct Ratio {
    double sum = 0, of = 0;
    void Add(double add_sum, double add_of, double keep) {
      sum = sum * keep + add_sum;
      of = of * keep + add_of;
    }
    double value() const { return of > 0 ? sum / of : 0; }  // 0: nothing is known
  };

  // What there is of a flow, and what has come of it lately.
  struct FlowWork {
    int64_t tokens = 0;
    double since = 0;    // in elapsed_: its first work
    double seen = 0;     // in elapsed_: when `arrived` was last brought up to date
    double arrived = 0;  // tokens, of which the past counts for less and less
  };
  // Another flow, as one estimate sees it: what it has and goes on sending, and its weight beside
  // the caller's.
  struct Other {
    double tokens, tokens_per_second, weight;
  };
  std::vector<Other> OthersThan(const Flow& own, double weight) const;
  // In which the engine finishes so many tokens of a flow, and what goes before them: under fair
  // sharing that is of every other flow as much, in proportion to their weights, and no more than
  // it has and, if it goes on as it did lately, will have until then. Zero as long as nothing is
  // known.
  absl::Duration TimeUntil(int64_t tokens, const std::vector<Other>& others) const;
  double Lately(const FlowWork& work) const;
  double TokensPerSecond(const FlowWork& work) const;

  std::map<Flow, FlowWork> flows_;  // kept for some time after they have come to nothing
  double elapsed_ = 0;              // seconds in which the engine worked
  int64_t tokens_ = 0;
  bool full_ = false;    // somebody waits for a place
  Ratio full_work_;      // tokens of work that sit in a full engine, over time
  Ratio work_time_;      // seconds a token of work, while somebody waits
  Ratio sequence_time_;  // seconds from its place to its end, a token of a sequence
  Margin alone_;
  // What is late while many wait was let in a whole line of waiting before, and so was what stands
  // behind it: they are late in bunches. Being strict costs little there, as the line stays.
  Margin waiting_{/*share=*/0.995};
};

}  // namespace linnet::server
