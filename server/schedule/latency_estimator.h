#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "server/base/caller.h"
#include "server/schedule/recent_ratio.h"
#include "server/schedule/safety_factor.h"
#include "server/schedule/step_cost.h"
#include "server/schedule/step_report.h"

namespace linnet::server {

// How much a call asks of an engine.
struct CallSize {
  int64_t tokens = 0;   // of work: the sum over all segments of (source + max target) x rows
  int64_t longest = 0;  // source and max target tokens of its longest segment
  double rows = 0;      // of all segments
};

// How long a call will take, as far as can be said when it arrives.
struct Estimate {
  absl::Duration time = absl::ZeroDuration();  // zero: nothing is known
  absl::Duration wait = absl::ZeroDuration();  // of it, for what goes before
  bool waits = false;                          // it does not find its rows free
};

// What one model has to do, and how fast it does it: from that, when a call would be done.
//
// Three things are learned from the steps: what a step costs with so many rows in it, how many
// steps a sequence takes for a token that it may have at most, and how many rows a full engine
// holds.
// Plain and deterministic: it reads no clock. Not thread-safe.
class LatencyEstimator {
 public:
  // Work that was admitted, and that has ended.
  void Add(const Caller& caller, int64_t tokens, double rows);
  void Remove(const Caller& caller, int64_t tokens, double rows);
  // A step of the model's scheduler and how long all of it took.
  void StepMade(const StepReport& report, absl::Duration cycle);

  // How long a call would take from now. Zero as long as nothing is known.
  //
  // While all that was admitted has its rows, that is the time of the call's longest sequence among
  // them. Otherwise it waits until what goes before it is finished, and is not done before all of
  // its own is.
  Estimate TimeToFinish(const Caller& caller, const CallSize& call) const;
  // The same of an engine that has nothing else to do.
  Estimate TimeWhenIdle(const CallSize& call) const;
  // How much time a call with this estimate must have to be admitted: it may wait for kMaxWait of
  // it.
  absl::Duration TimeNeeded(const Estimate& estimate, absl::Time now) const {
    return std::max(estimate.time, estimate.wait / kMaxWait) * safety_factor(estimate, now);
  }
  double safety_factor(const Estimate& estimate, absl::Time now) const {
    return (estimate.waits ? waiting_ : immediate_).value(now);
  }
  void RecordCompletion(const Estimate& estimate, absl::Duration actual, absl::Time now) {
    (estimate.waits ? waiting_ : immediate_).RecordCompletion(estimate.time, actual, now);
  }
  void RecordTimeout(const Estimate& estimate, absl::Duration after, absl::Time now) {
    (estimate.waits ? waiting_ : immediate_).RecordTimeout(estimate.time, after, now);
  }
  // In which a full engine finishes so many tokens of work. Zero as long as nothing is known.
  absl::Duration TimeFor(int64_t tokens) const;

  int64_t tokens() const { return tokens_; }
  bool idle() const { return tokens_ == 0; }

 private:
  // If all of it could be, short texts, which can wait the longest, would leave no rows to long
  // ones.
  static constexpr double kMaxWait = 0.75;

  // What there is of a flow, and what has come of it lately.
  struct FlowWork {
    int64_t tokens = 0;
    double since = 0;    // in elapsed_: its first work
    double seen = 0;     // in elapsed_: when `arrived` was last brought up to date
    double arrived = 0;  // tokens, of which the past counts for less and less
  };
  // Another flow of the same client or another client, as one estimate sees it: what it has and
  // goes on sending, and its weight beside the caller's.
  struct Other {
    double tokens = 0, tokens_per_second = 0, weight = 1;
    // What of it is finished within so many seconds, while so many tokens of the caller's are.
    double Share(double own, double seconds) const {
      return std::min(tokens + tokens_per_second * seconds, own * weight);
    }
  };
  struct Others {
    std::vector<Other> flows;  // of the same client and priority
    std::vector<Other> clients;
  };
  Others OthersThan(const Flow& own) const;
  // In which the engine finishes so many tokens of a flow, and what goes before them: under fair
  // sharing that is of every other flow of the client as much, and of every other client as much as
  // of this one, in proportion to their weights; and no more than it has and, if it goes on as it
  // did lately, will have until then. Zero as long as nothing is known.
  absl::Duration TimeUntil(int64_t tokens, const Others& others) const;
  double Lately(const FlowWork& work) const;
  double TokensPerSecond(const FlowWork& work) const;
  // How long a sequence takes that may have so many tokens, in steps of so many rows.
  absl::Duration SequenceTime(int64_t tokens, double rows) const;
  double StepsPerToken() const;
  // Rows of a full engine; 0 as long as nothing is known.
  double Capacity() const;

  std::map<Flow, FlowWork> flows_;  // kept for some time after they have come to nothing
  double elapsed_ = 0;              // seconds in which the engine worked
  int64_t tokens_ = 0;
  double rows_ = 0;  // of the sequences that were admitted and have not ended
  StepCost step_cost_;
  RecentRatio steps_per_token_;
  int rows_limit_ = 0;  // of the engine
  // Where its memory or a limit on sequences is used up first, a full engine has fewer rows.
  RecentRatio full_rows_;
  SafetyFactor immediate_;
  // When calls are late while many wait, all that waited behind them are late as well: in bunches.
  // Being strict costs little there, as others wait.
  SafetyFactor waiting_{/*share=*/0.995};
};

}  // namespace linnet::server
