#include "server/admission/latency_estimator.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <numbers>

namespace linnet::server {
namespace {

// Half-life of steps_per_token_, in finished tokens: some hundred sentences.
constexpr double kHalfLifeTokens = 10'000;
// Half-life of full_rows_, in full steps.
constexpr double kHalfLifeFullSteps = 100;
// Half-life of a flow's arrival rate, in busy seconds.
constexpr double kArrivalHalfLife = 2;
// Number of flows beyond which a flow is forgotten with its last work. All flows are visited at the
// admission of a call, and a client may send any number of ids.
constexpr size_t kMaxIdleFlows = 256;
// Min time over which the rate of a flow is computed: a new flow has no meaningful rate.
constexpr double kMinSeconds = 1;

}  // namespace

double LatencyEstimator::RecentArrivals(const FlowWork& work) const {
  return work.arrived * std::exp2(-(elapsed_ - work.updated) / kArrivalHalfLife);
}

double LatencyEstimator::TokensPerSecond(const FlowWork& work) const {
  // The decayed time since the first work, with the same weights as the decayed arrivals.
  const double seconds = kArrivalHalfLife / std::numbers::ln2 *
                         (1 - std::exp2(-(elapsed_ - work.since) / kArrivalHalfLife));
  return RecentArrivals(work) / std::max(seconds, kMinSeconds);
}

void LatencyEstimator::Add(const Caller& caller, int64_t tokens, double rows) {
  const auto [flow, first] = flows_.try_emplace(CallerFlow(caller));
  FlowWork& work = flow->second;
  if (first) work.since = elapsed_;
  work.arrived = RecentArrivals(work) + static_cast<double>(tokens);
  work.updated = elapsed_;
  work.tokens += tokens;
  tokens_ += tokens;
  rows_ += rows;
}

void LatencyEstimator::Remove(const Caller& caller, int64_t tokens, double rows) {
  const auto flow = flows_.find(CallerFlow(caller));
  if (flow == flows_.end()) return;
  tokens_ -= tokens;
  rows_ = tokens_ == 0 ? 0 : rows_ - rows;  // 0 exactly, without rounding errors
  flow->second.tokens = std::max<int64_t>(0, flow->second.tokens - tokens);
  if (flow->second.tokens == 0 && flows_.size() > kMaxIdleFlows) Forget(flow);
}

void LatencyEstimator::Forget(std::map<Flow, FlowWork>::iterator flow) {
  const auto of_client = [&](const auto& other) {
    return other.first.client == flow->first.client && other.first.priority == flow->first.priority;
  };
  auto neighbour = std::next(flow);
  if (neighbour == flows_.end() || !of_client(*neighbour))
    neighbour = flow == flows_.begin() ? flow : std::prev(flow);
  if (neighbour != flow && of_client(*neighbour)) {
    FlowWork& work = neighbour->second;
    work.arrived = RecentArrivals(work) + RecentArrivals(flow->second);
    work.updated = elapsed_;
    work.since = std::min(work.since, flow->second.since);
  }
  flows_.erase(flow);
}

void LatencyEstimator::StepMade(const StepReport& report, absl::Duration cycle) {
  elapsed_ += absl::ToDoubleSeconds(cycle);
  std::erase_if(flows_, [this](const auto& flow) {
    return flow.second.tokens == 0 && elapsed_ - flow.second.updated > 5 * kArrivalHalfLife;
  });
  if (report.rows_limit > 0) rows_limit_ = report.rows_limit;
  if (!report.stepped) return;
  step_cost_.Record(report.rows, cycle, report.ended);
  if (report.full || (full_rows_.known() && report.rows > full_rows_.value()))
    full_rows_.Add(report.rows, 1, std::exp2(-1 / kHalfLifeFullSteps));
  const auto finished = static_cast<double>(report.finished_tokens);
  steps_per_token_.Add(static_cast<double>(report.finished_steps), finished,
                       std::exp2(-finished / kHalfLifeTokens));
}

double LatencyEstimator::StepsPerToken() const {
  return steps_per_token_.known() ? steps_per_token_.value() : 1;
}

double LatencyEstimator::Capacity() const {
  return full_rows_.known() ? full_rows_.value() : rows_limit_;
}

absl::Duration LatencyEstimator::SequenceTime(int64_t tokens, double rows) const {
  return step_cost_.Of(rows) * (static_cast<double>(tokens) * StepsPerToken());
}

absl::Duration LatencyEstimator::TimeFor(int64_t tokens) const {
  const double rows = Capacity();
  if (rows == 0) return absl::ZeroDuration();
  return SequenceTime(tokens, rows) / rows;
}

LatencyEstimator::Others LatencyEstimator::OtherFlows(const Flow& own) const {
  Others others;
  const Flow* last = nullptr;  // flows of one client and priority are adjacent in the map
  for (const auto& [flow, work] : flows_) {
    const bool new_client =
        last == nullptr || last->client != flow.client || last->priority != flow.priority;
    last = &flow;
    const bool same_client = flow.client == own.client && flow.priority == own.priority;
    if (same_client && flow.id == own.id) continue;
    std::vector<Other>& level = same_client ? others.flows : others.clients;
    if (same_client || new_client) level.emplace_back();
    level.back().tokens += static_cast<double>(work.tokens);
    level.back().tokens_per_second += TokensPerSecond(work);
    if (!same_client)
      level.back().weight = PriorityWeight(flow.priority) / PriorityWeight(own.priority);
  }
  return others;
}

absl::Duration LatencyEstimator::TimeUntil(int64_t tokens, const Others& others) const {
  // A fixed point: the longer it takes, the more work is put before it. Four iterations come close
  // to it, from below.
  absl::Duration time = absl::ZeroDuration();
  for (int iteration = 0; iteration < 4; ++iteration) {
    const double seconds = absl::ToDoubleSeconds(time);
    const auto own = static_cast<double>(tokens);
    double of_client = own;
    for (const Other& flow : others.flows) of_client += flow.Share(own, seconds);
    double all = of_client;
    for (const Other& client : others.clients) all += client.Share(of_client, seconds);
    time = TimeFor(static_cast<int64_t>(all));
  }
  return time;
}

Estimate LatencyEstimator::TimeToFinish(const Caller& caller, const CallSize& call) const {
  const double capacity = Capacity();
  if (capacity == 0 || rows_ + call.rows <= capacity)
    return {.time = SequenceTime(call.longest, rows_ + call.rows)};
  const Flow own = CallerFlow(caller);
  const auto mine = flows_.find(own);
  const int64_t before = mine == flows_.end() ? 0 : mine->second.tokens;
  const Others others = OtherFlows(own);
  const absl::Duration all = TimeUntil(before + call.tokens, others);
  const absl::Duration wait = TimeUntil(before, others);
  return {.time = std::max(all, wait + SequenceTime(call.longest, capacity)),
          .wait = wait,
          .waits = true};
}

Estimate LatencyEstimator::TimeWhenIdle(const CallSize& call) const {
  const double capacity = Capacity();
  if (capacity == 0 || call.rows <= capacity)
    return {.time = SequenceTime(call.longest, call.rows)};
  return {.time = std::max(TimeFor(call.tokens), SequenceTime(call.longest, capacity)),
          .waits = true};
}

}  // namespace linnet::server
