#include "server/text/text_queue.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace linnet::server {
namespace {

// Fixed cost of a job, in bytes: switching to it takes some microseconds, the time to tokenise a
// few dozen bytes.
constexpr int64_t kCostOfJob = 64;
// Half-lives of the speed estimate, in bytes and in time.
constexpr double kHalfLifeBytes = 1 << 20;
constexpr absl::Duration kHalfLife = absl::Seconds(10);
// Durations are capped at this multiple of the estimate, as in StepCost: a longer job was delayed
// by something else, such as a pause of the machine.
constexpr double kMaxOverEstimate = 4;

int64_t Cost(int64_t bytes) { return bytes + kCostOfJob; }

}  // namespace

void TextQueue::Push(TextJob job) {
  const Flow flow = job.flow;
  const uint64_t call = job.call;
  const auto cost = static_cast<double>(Cost(job.bytes));
  auto& jobs = stage(job.continues ? TextStage::kPrepare : job.stage).jobs;
  jobs.Push(flow, call, cost, std::move(job));
}

std::optional<TextJob> TextQueue::Next() {
  if (!answer_.jobs.empty()) return answer_.jobs.ServeNext();
  if (!prepare_.jobs.empty()) return prepare_.jobs.ServeNext();
  return std::nullopt;
}

double TextQueue::Stage::Decay(MonotonicTime now) const {
  return std::exp2(
      -absl::FDivDuration(std::max(absl::ZeroDuration(), Elapsed(last, now)), kHalfLife));
}

void TextQueue::RecordCompletion(TextStage which, int64_t bytes, absl::Duration time,
                                 MonotonicTime now) {
  Stage& stage = this->stage(which);
  const auto cost = static_cast<double>(Cost(bytes));
  double seconds = absl::ToDoubleSeconds(time);
  if (stage.seconds_per_byte.value() > 0)  // durations of zero carry no information
    seconds = std::min(seconds, kMaxOverEstimate * cost * stage.seconds_per_byte.value());
  stage.seconds_per_byte.Add(seconds, cost, std::exp2(-cost / kHalfLifeBytes) * stage.Decay(now));
  stage.last = std::max(stage.last, now);
}

absl::Duration TextQueue::EstimateTime(TextStage which, const Flow& flow, int64_t bytes,
                                       int threads, MonotonicTime now) const {
  const Stage& stage = this->stage(which);
  const auto own = static_cast<double>(Cost(bytes));
  const double before = stage.jobs.WorkUntil(flow, own) - own;
  double seconds = (before / threads + own) * stage.seconds_per_byte.value();
  if (stage.jobs.empty()) seconds *= stage.Decay(now);
  // All queued answers go before a text to prepare.
  if (which == TextStage::kPrepare)
    seconds += answer_.jobs.work() * answer_.seconds_per_byte.value() / threads;
  return absl::Seconds(seconds);
}

}  // namespace linnet::server
