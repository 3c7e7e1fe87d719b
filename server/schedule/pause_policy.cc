#include "server/schedule/pause_policy.h"

#include <algorithm>
#include <cmath>

namespace linnet::server {
namespace {

// Half-lives in source tokens and in interactive sequences.
constexpr double kHalfLifeTokens = 2000;
constexpr double kHalfLifeSequences = 20;
// A wait that nobody notices.
constexpr absl::Duration kMinTarget = absl::Milliseconds(10);
// Less than what a step needs that costs nothing.
constexpr absl::Duration kNothing = -absl::Nanoseconds(1);

}  // namespace

void PausePolicy::Observe(const Classes& classes, absl::Time now) {
  if (!runs_ || !classes.interactive_runs) left_ = absl::ZeroDuration();
  waits_ = classes.interactive_waits;
  runs_ = classes.interactive_runs;
  if (waits_ || runs_) interactive_ = now;
  if (waits_ || runs_ || classes.normal) higher_ = now;
  recently_ = now - interactive_ < kRecently;
  leaves_rows_ = now - higher_ < kRecently;
}

absl::Duration PausePolicy::Target() const {
  if (!interactive_seconds_.known()) return absl::InfiniteDuration();
  return std::max(kMinTarget, absl::Seconds(interactive_seconds_.value()) / 2);
}

absl::Duration PausePolicy::EncodingTime(int tokens) const {
  return absl::Seconds(tokens * token_seconds_.value());
}

bool PausePolicy::Admits(int rows, int lower_rows, int tokens) const {
  if (runs_) return left_ >= EncodingTime(tokens);
  if (waits_) return false;
  return !recently_ || (EncodingTime(tokens) < Target() &&
                        steps_.Of(rows) - steps_.Of(rows - lower_rows) < Target());
}

void PausePolicy::Added(int tokens) { left_ -= EncodingTime(tokens); }

void PausePolicy::Choose(int rows, int wanted) {
  rows_ = rows;
  wanted_ = wanted;
  if (!runs_) {
    left_ = wanted > 0 ? kNothing : recently_ ? Target() : absl::InfiniteDuration();
  } else if (steps_.Knows(rows)) {
    left_ = std::min(left_, absl::ZeroDuration()) + kShare * steps_.Of(rows);
  } else {
    left_ = kNothing;  // the cost of a step so small is unknown: make one
  }
}

bool PausePolicy::Decodes(int rows) {
  if (wanted_ <= 0 && left_ < absl::ZeroDuration()) return false;
  wanted_ -= rows;
  left_ -= std::max(absl::ZeroDuration(), steps_.Of(rows_ + rows) - steps_.Of(rows_));
  rows_ += rows;
  return true;
}

void PausePolicy::RecordEncoding(int tokens, absl::Duration time) {
  if (tokens > 0)
    token_seconds_.Add(absl::ToDoubleSeconds(time), tokens, std::exp2(-tokens / kHalfLifeTokens));
}

void PausePolicy::RecordInteractive(absl::Duration time) {
  interactive_seconds_.Add(absl::ToDoubleSeconds(time), 1, std::exp2(-1 / kHalfLifeSequences));
}

}  // namespace linnet::server
