#include "server/schedule/workload.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace linnet::server {
namespace {

// Half of what is known of the speed is of the last so many seconds of work.
constexpr double kHalfLife = 10;
// The same of what clients send.
constexpr double kArrivalHalfLife = 2;
// With less than that, nothing is known: a first batch that has just begun has finished nothing.
constexpr double kLeastSeconds = 1;

}  // namespace

double Workload::Lately(const FlowWork& work) const {
  return work.arrived * std::exp2(-(elapsed_ - work.seen) / kArrivalHalfLife);
}

double Workload::TokensPerSecond(const FlowWork& work) const {
  // The time that counts, by the same weights as the work.
  const double seconds = kArrivalHalfLife / std::numbers::ln2 *
                         (1 - std::exp2(-(elapsed_ - work.since) / kArrivalHalfLife));
  return Lately(work) / std::max(seconds, kLeastSeconds);
}

void Workload::Add(const Caller& caller, int64_t tokens) {
  const auto [flow, first] = flows_.try_emplace(FlowOf(caller));
  FlowWork& work = flow->second;
  if (first) work.since = elapsed_;
  work.arrived = Lately(work) + static_cast<double>(tokens);
  work.seen = elapsed_;
  work.tokens += tokens;
  tokens_ += tokens;
}

void Workload::Remove(const Caller& caller, int64_t tokens) {
  const auto flow = flows_.find(FlowOf(caller));
  if (flow == flows_.end()) return;
  tokens_ -= tokens;
  flow->second.tokens = std::max<int64_t>(0, flow->second.tokens - tokens);
}

void Workload::StepMade(const StepReport& report, absl::Duration cycle) {
  const double seconds = absl::ToDoubleSeconds(cycle);
  elapsed_ += seconds;
  std::erase_if(flows_, [this](const auto& flow) {
    return flow.second.tokens == 0 && elapsed_ - flow.second.seen > 5 * kArrivalHalfLife;
  });
  const double keep = std::exp2(-seconds / kHalfLife);
  full_ = report.waiting > 0;
  if (full_) work_time_.Add(seconds, static_cast<double>(report.finished_work), keep);
  if (report.full) full_work_.Add(static_cast<double>(report.work) * seconds, seconds, keep);
  sequence_time_.Add(absl::ToDoubleSeconds(report.finished_time),
                     static_cast<double>(report.finished_tokens), keep);
}

absl::Duration Workload::TimeFor(int64_t tokens) const {
  if (work_time_.sum < kLeastSeconds || work_time_.of <= 0) return absl::ZeroDuration();
  return absl::Seconds(static_cast<double>(tokens) * work_time_.sum / work_time_.of);
}

absl::Duration Workload::TimeUntil(const Caller& caller, int64_t tokens) const {
  struct Other {
    double tokens, tokens_per_second, share;
  };
  const Flow own = FlowOf(caller);
  std::vector<Other> others;
  for (const auto& [flow, work] : flows_) {
    if (flow == own) continue;
    others.push_back({static_cast<double>(work.tokens), TokensPerSecond(work),
                      static_cast<double>(tokens) * WeightOf(flow.priority) / caller.weight()});
  }
  // The longer it takes, the more goes before it: a few turns come close, from below.
  absl::Duration time = absl::ZeroDuration();
  for (int turn = 0; turn < 4; ++turn) {
    const double seconds = absl::ToDoubleSeconds(time);
    auto all = static_cast<double>(tokens);
    for (const Other& other : others)
      all += std::min(other.tokens + other.tokens_per_second * seconds, other.share);
    time = TimeFor(static_cast<int64_t>(all));
  }
  return time;
}

Estimate Workload::TimeToFinish(const Caller& caller, int64_t tokens, int64_t longest) const {
  absl::Duration alone = absl::ZeroDuration();
  if (sequence_time_.of > 0) {
    alone = absl::Seconds(static_cast<double>(longest) * sequence_time_.sum / sequence_time_.of);
  }
  const double seated = full_work_.of > 0 ? full_work_.sum / full_work_.of : 0;
  // Whether somebody waits is of the last step, and many may have come since.
  if (!full_ && (seated == 0 || static_cast<double>(tokens_ + tokens) <= seated))
    return {.time = alone};
  const auto flow = flows_.find(FlowOf(caller));
  const int64_t before = flow == flows_.end() ? 0 : flow->second.tokens;
  const absl::Duration all = TimeUntil(caller, before + tokens);
  if (all == absl::ZeroDuration()) return {};
  const absl::Duration wait = TimeUntil(caller, before);
  return {.time = std::max(all, wait + alone), .wait = wait, .waits = true};
}

}  // namespace linnet::server
