#include "server/schedule/step_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace linnet::server {
namespace {

constexpr absl::Duration kHalfLife = absl::Seconds(2);
// Half-life of the means of a bucket, in steps of that bucket.
constexpr double kHalfLifeSteps = 200;
// Durations are capped at this multiple of the estimate: a longer step was delayed by something
// else. A machine that becomes slower still raises the estimate within a few steps.
constexpr double kMaxOverEstimate = 4;

}  // namespace

void StepCost::Record(int rows, absl::Duration step, absl::Time now) {
  if (rows <= 0) return;
  Bucket& bucket = buckets_[IndexOf(rows)];
  double seconds = absl::ToDoubleSeconds(step);
  if (bucket.seconds.known()) {
    seconds = std::min(seconds, kMaxOverEstimate * absl::ToDoubleSeconds(Of(rows)));
    // If the clock is set back, the scale does not decay.
    const absl::Duration since = std::max(absl::ZeroDuration(), now - last_);
    scale_.Add(seconds, Shape(rows), std::exp2(-absl::FDivDuration(since, kHalfLife)));
    last_ = now;
  } else if (!scale_.known()) {
    scale_.Add(seconds, seconds, 1);
    last_ = now;
  }
  const double keep = std::exp2(-1 / kHalfLifeSteps);
  bucket.rows.Add(rows, 1, keep);
  if (!scale_.known() || scale_.value() <= 0) return;  // durations of zero carry no information
  bucket.seconds.Add(seconds / scale_.value(), 1, keep);
}

size_t StepCost::IndexOf(int rows) {
  const auto width = static_cast<size_t>(std::bit_width(static_cast<uint32_t>(rows)));
  return std::min(width, kBuckets - 1);
}

bool StepCost::Knows(int rows) const {
  const auto end = buckets_.begin() + IndexOf(rows) + 1;
  return std::any_of(buckets_.begin(), end, [](const Bucket& each) { return each.rows.known(); });
}

absl::Duration StepCost::Of(double rows) const {
  return absl::Seconds(scale_.value() * Shape(rows));
}

double StepCost::Shape(double rows) const {
  const Bucket* below = nullptr;
  const Bucket* above = nullptr;
  double max = std::numeric_limits<double>::infinity();
  for (const Bucket& bucket : buckets_) {
    if (!bucket.seconds.known()) continue;
    max = std::min(max, bucket.seconds.value() * std::max(1.0, rows / bucket.rows.value()));
    if (bucket.rows.value() <= rows) below = &bucket;
    if (bucket.rows.value() > rows && above == nullptr) above = &bucket;
  }
  if (below == nullptr && above == nullptr) return 0;
  if (below == nullptr || above == nullptr) return max;
  const double share = (rows - below->rows.value()) / (above->rows.value() - below->rows.value());
  return std::min(max, std::lerp(below->seconds.value(), above->seconds.value(), share));
}

}  // namespace linnet::server
