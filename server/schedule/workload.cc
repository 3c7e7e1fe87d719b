#include "server/schedule/workload.h"

#include <algorithm>
#include <cmath>

namespace linnet::server {
namespace {

// Half of what is known of the speed is of the last so many seconds of work.
constexpr double kHalfLife = 10;
// With less than that, nothing is known: a first batch that has just begun has finished nothing.
constexpr double kLeastSeconds = 1;

}  // namespace

void Workload::Add(const Caller& caller, int64_t tokens) {
  flows_[FlowOf(caller)] += tokens;
  tokens_ += tokens;
}

void Workload::Remove(const Caller& caller, int64_t tokens) {
  const auto flow = flows_.find(FlowOf(caller));
  if (flow == flows_.end()) return;
  tokens_ -= tokens;
  if ((flow->second -= tokens) <= 0) flows_.erase(flow);
}

void Workload::StepMade(const StepReport& report, absl::Duration cycle) {
  const double seconds = absl::ToDoubleSeconds(cycle);
  const double keep = std::exp2(-seconds / kHalfLife);
  full_ = report.waiting > 0;
  if (full_) work_time_.Add(seconds, static_cast<double>(report.finished_work), keep);
  sequence_time_.Add(absl::ToDoubleSeconds(report.finished_time),
                     static_cast<double>(report.finished_tokens), keep);
}

absl::Duration Workload::TimeFor(int64_t tokens) const {
  if (work_time_.sum < kLeastSeconds || work_time_.of <= 0) return absl::ZeroDuration();
  return absl::Seconds(static_cast<double>(tokens) * work_time_.sum / work_time_.of);
}

Estimate Workload::TimeToFinish(const Caller& caller, int64_t tokens, int64_t longest) const {
  absl::Duration alone = absl::ZeroDuration();
  if (sequence_time_.of > 0) {
    alone = absl::Seconds(static_cast<double>(longest) * sequence_time_.sum / sequence_time_.of);
  }
  if (!full_) return {alone, false};
  const Flow own = FlowOf(caller);
  const auto mine = flows_.find(own);
  const double until = static_cast<double>(tokens + (mine == flows_.end() ? 0 : mine->second));
  double before = until;
  for (const auto& [flow, work] : flows_) {
    if (flow == own) continue;
    before +=
        std::min(static_cast<double>(work), until * WeightOf(flow.priority) / caller.weight());
  }
  return {std::max(alone, TimeFor(static_cast<int64_t>(before))), true};
}

}  // namespace linnet::server
