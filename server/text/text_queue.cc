#include "server/text/text_queue.h"

#include <cmath>
#include <utility>

namespace linnet::server {
namespace {

// Fixed cost of a job, in bytes: switching to it takes some microseconds, the time to tokenise a
// few dozen bytes.
constexpr int64_t kCostOfJob = 64;
// Half life of the speed estimate, in bytes.
constexpr double kHalfLifeBytes = 1 << 20;

int64_t Cost(int64_t bytes) { return bytes + kCostOfJob; }

}  // namespace

void TextQueue::Push(TextJob job) {
  const Flow flow = job.flow;
  const uint64_t call = job.call;
  const auto cost = static_cast<double>(Cost(job.bytes));
  auto& jobs = stage(job.stage).jobs;
  jobs.Push(flow, call, cost, std::move(job));
}

std::optional<TextJob> TextQueue::Next() {
  if (!answer_.jobs.empty()) return answer_.jobs.ServeNext();
  if (!prepare_.jobs.empty()) return prepare_.jobs.ServeNext();
  return std::nullopt;
}

void TextQueue::RecordCompletion(TextStage which, int64_t bytes, absl::Duration time) {
  Stage& stage = this->stage(which);
  const auto cost = static_cast<double>(Cost(bytes));
  const double keep = std::exp2(-cost / kHalfLifeBytes);
  stage.seconds = stage.seconds * keep + absl::ToDoubleSeconds(time);
  stage.bytes = stage.bytes * keep + cost;
}

absl::Duration TextQueue::EstimateTime(TextStage which, const Flow& flow, int64_t bytes,
                                       int threads) const {
  const Stage& stage = this->stage(which);
  const auto own = static_cast<double>(Cost(bytes));
  const double before = stage.jobs.WorkUntil(flow, own) - own;
  double seconds = (before / threads + own) * stage.seconds_per_byte();
  // All queued answers go before a text to prepare.
  if (which == TextStage::kPrepare)
    seconds += answer_.jobs.work() * answer_.seconds_per_byte() / threads;
  return absl::Seconds(seconds);
}

}  // namespace linnet::server
