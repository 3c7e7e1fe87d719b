#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "server/admission/call_size.h"
#include "server/admission/safety_factor.h"
#include "server/base/caller.h"
#include "server/schedule/recent_ratio.h"
#include "server/schedule/step_cost.h"
#include "server/schedule/step_report.h"

namespace linnet::server {

// The latency estimate of a call at its arrival.
struct Estimate {
  absl::Duration time = absl::ZeroDuration();  // total; zero: unknown
  absl::Duration wait = absl::ZeroDuration();  // the part spent waiting for rows
  bool waits = false;                          // the rows for the call are not free now
  bool probes = false;                         // the call was admitted to correct its estimate
};

// Estimates how long a call to one model takes, from the admitted work and the speed of the engine.
//
// Learns three things from the steps: the duration of a step by its rows (StepCost), the steps that
// a sequence takes per token of its max length, and the rows in use when the engine is full.
// Deterministic: reads no clock. Not thread-safe: Admission owns it and guards it by its lock.
class LatencyEstimator {
 public:
  // Add work when it is admitted, remove it when it has ended.
  void Add(const Caller& caller, int64_t tokens, double rows);
  void Remove(const Caller& caller, int64_t tokens, double rows);
  // Records a step of the model's scheduler, and its duration including the sinks.
  void StepMade(const StepReport& report, absl::Duration cycle);

  // The time from now to the end of a call. Zero before the first step.
  //
  // If there are free rows for the call, that is the time of its longest sequence in a batch with
  // all admitted ones. Otherwise the call waits for the work that fair queueing puts before it, and
  // then for all of its own.
  Estimate TimeToFinish(const Caller& caller, const CallSize& call) const;
  // The same on an idle engine.
  Estimate TimeWhenIdle(const CallSize& call) const;
  // The time before its deadline that a call with this estimate needs to be admitted; at most
  // kMaxWait of that may be waiting.
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
  // The time in which a full engine finishes this much work. Zero before the first step.
  absl::Duration TimeFor(int64_t tokens) const;

  int64_t tokens() const { return tokens_; }
  bool idle() const { return tokens_ == 0; }
  // Flows whose work and arrivals are known: those with admitted work, and at most 256 others.
  size_t flows() const { return flows_.size(); }

 private:
  // Max part of the time before a deadline that a call may wait. With 1, short texts, which can
  // wait the longest, would leave no rows for long ones.
  static constexpr double kMaxWait = 0.75;

  // The admitted work of a flow, and its arrival rate.
  struct FlowWork {
    int64_t tokens = 0;
    double since = 0;    // value of elapsed_ at its first work
    double updated = 0;  // value of elapsed_ when `arrived` was last updated
    double arrived = 0;  // tokens that arrived, exponentially decayed
  };
  // A competing flow or client: its admitted tokens, its arrival rate, and its weight relative to
  // the caller's.
  struct Other {
    double tokens = 0, tokens_per_second = 0, weight = 1;
    // Its tokens that are finished within `seconds`, while `own` tokens of the caller are.
    double Share(double own, double seconds) const {
      return std::min(tokens + tokens_per_second * seconds, own * weight);
    }
  };
  struct Others {
    std::vector<Other> flows;  // of the same client and priority
    std::vector<Other> clients;
  };
  Others OtherFlows(const Flow& own) const;
  // The time in which the engine finishes `tokens` of a flow together with the work that fair
  // queueing puts before them. Every other flow of the client gets as many tokens as this flow, and
  // every other client as many as this client, in proportion to their weights; but no more than it
  // has admitted and, at its current arrival rate, will have until then. Zero before the first
  // step.
  absl::Duration TimeUntil(int64_t tokens, const Others& others) const;
  double RecentArrivals(const FlowWork& work) const;
  double TokensPerSecond(const FlowWork& work) const;
  // Time of a sequence of at most `tokens` tokens, in steps of `rows` rows.
  absl::Duration SequenceTime(int64_t tokens, double rows) const;
  double StepsPerToken() const;
  // Rows of a full engine; 0 before the first step.
  double Capacity() const;

  // Erases a flow without work. Its arrivals are counted with those of a flow of the same client,
  // if there is another one, so that the rate of the client stays right.
  void Forget(std::map<Flow, FlowWork>::iterator flow);

  // A flow stays for ten busy seconds after its last work, unless there are too many.
  std::map<Flow, FlowWork> flows_;
  double elapsed_ = 0;  // seconds in which the engine was busy
  int64_t tokens_ = 0;
  double rows_ = 0;  // of the admitted sequences that have not ended
  StepCost step_cost_;
  RecentRatio steps_per_token_;
  int rows_limit_ = 0;  // rows of the engine
  // Rows in use in full steps: fewer than rows_limit_ where the encoder cache or the limit on
  // sequences is exhausted first.
  RecentRatio full_rows_;
  SafetyFactor immediate_;  // for calls that find free rows
  // For calls that wait. They are late in bunches, with all the calls behind a late one. A strict
  // share costs little here, because other calls use the engine.
  SafetyFactor waiting_{/*share=*/0.995};
};

}  // namespace linnet::server
