#include "client/run/timeline.h"

namespace linnet::client {

Timeline::Interval* Timeline::At(absl::Duration time) {
  if (time < begin_) return nullptr;
  while (time - begin_ >= length_ * static_cast<int64_t>(kMaxIntervals)) {
    std::vector<Interval> wider((intervals_.size() + 1) / 2);
    for (size_t i = 0; i < intervals_.size(); ++i) {
      Interval& interval = wider[i / 2];
      interval.due += intervals_[i].due;
      interval.answered += intervals_[i].answered;
      interval.failed += intervals_[i].failed;
      interval.latency.Add(intervals_[i].latency);
    }
    intervals_ = std::move(wider);
    length_ *= 2;
  }
  const auto place = static_cast<size_t>((time - begin_) / length_);
  if (intervals_.size() <= place) intervals_.resize(place + 1);
  return &intervals_[place];
}

void Timeline::Add(const CallTimes& times, const CallOutcome& outcome) {
  if (Interval* due = At(times.intended)) {
    ++due->due;
    if (outcome.status.ok()) due->latency.Record(times.ended - times.intended);
  }
  if (Interval* ended = At(times.ended);
      ended != nullptr && outcome.abandonment == Abandonment::kNone) {
    ++(outcome.status.ok() ? ended->answered : ended->failed);
  }
}

void Timeline::AddNotSent(absl::Duration intended) {
  if (Interval* due = At(intended)) ++due->due;
}

}  // namespace linnet::client
