#include "client/run/record.h"

#include <algorithm>
#include <numeric>

namespace linnet::client {

void LoadRecord::Add(const CallTimes& times, const CallOutcome& outcome) {
  if (outcome.status.ok() && InWindow(times.ended)) {
    ++answered_in_window_;
    texts_ += outcome.texts;
    source_tokens_ += outcome.source_tokens;
    target_tokens_ += outcome.target_tokens;
  }
  if (times.intended < window_begin_) ++warm_up_;
  if (!InWindow(times.intended)) return;
  if (times.sent - times.intended > kLate) ++late_;
  if (outcome.abandonment != Abandonment::kNone) {
    ++abandoned_[static_cast<size_t>(outcome.abandonment)];
    return;
  }
  const auto [place, is_first] = by_status_.try_emplace(outcome.status.code());
  StatusRecord& record = place->second;
  if (is_first) record.first_message = std::string(outcome.status.message());
  record.from_intended.Record(times.ended - times.intended);
  record.from_sent.Record(times.ended - times.sent);
  KindRecord& kind = by_kind_[outcome.kind];
  ++kind.calls;
  if (!outcome.status.ok()) return;
  ++kind.answered;
  kind.target_tokens += outcome.target_tokens;
  kind.latency.Record(times.ended - times.intended);
}

void LoadRecord::AddNotSent(absl::Duration intended) {
  if (intended < window_begin_) {
    ++warm_up_;
  } else if (InWindow(intended)) {
    ++not_sent_;
  }
}

void LoadRecord::EndWindow(absl::Duration at) {
  window_end_ = std::max(window_begin_, std::min(window_end_, at));
}

int64_t LoadRecord::measured() const {
  int64_t calls = 0;
  for (const auto& [code, record] : by_status_) calls += record.from_sent.count();
  return calls;
}

int64_t LoadRecord::abandoned() const {
  return std::accumulate(abandoned_.begin(), abandoned_.end(), int64_t{0});
}

}  // namespace linnet::client
