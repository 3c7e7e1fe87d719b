#include "server/schedule/workload.h"

#include <algorithm>
#include <cmath>
#include <numbers>

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
  if (work_time_.sum < kLeastSeconds) return absl::ZeroDuration();
  return absl::Seconds(static_cast<double>(tokens) * work_time_.value());
}

std::vector<Workload::Other> Workload::OthersThan(const Flow& own, double weight) const {
  std::vector<Other> others;
  for (const auto& [flow, work] : flows_) {
    if (flow == own) continue;
    others.push_back({static_cast<double>(work.tokens), TokensPerSecond(work),
                      WeightOf(flow.priority) / weight});
  }
  return others;
}

absl::Duration Workload::TimeUntil(int64_t tokens, const std::vector<Other>& others) const {
  // The longer it takes, the more goes before it: a few turns come close, from below.
  absl::Duration time = absl::ZeroDuration();
  for (int turn = 0; turn < 4; ++turn) {
    const double seconds = absl::ToDoubleSeconds(time);
    const auto own = static_cast<double>(tokens);
    double all = own;
    for (const Other& other : others)
      all += std::min(other.tokens + other.tokens_per_second * seconds, own * other.weight);
    time = TimeFor(static_cast<int64_t>(all));
  }
  return time;
}

Estimate Workload::TimeToFinish(const Caller& caller, int64_t tokens, int64_t longest) const {
  const absl::Duration alone = absl::Seconds(static_cast<double>(longest) * sequence_time_.value());
  const double places = full_work_.value();
  // Whether somebody waits is of the last step, and many may have come since.
  if (!full_ && (places == 0 || static_cast<double>(tokens_ + tokens) <= places))
    return {.time = alone};
  const Flow own = FlowOf(caller);
  const auto mine = flows_.find(own);
  const int64_t before = mine == flows_.end() ? 0 : mine->second.tokens;
  const std::vector<Other> others = OthersThan(own, caller.weight());
  const absl::Duration all = TimeUntil(before + tokens, others);
  if (all == absl::ZeroDuration()) return {};
  const absl::Duration wait = TimeUntil(before, others);
  return {.time = std::max(all, wait + alone), .wait = wait, .waits = true};
}

}  // namespace linnet::server
