#include "client/load/record.h"

#include <algorithm>

namespace linnet::client {

void LoadRecord::Add(const CallTimes& times, const CallOutcome& outcome) {
  if (outcome.status.ok() && times.ended >= window_begin_ && times.ended < window_end_) {
    ++answered_in_window_;
    source_tokens_ += outcome.source_tokens;
    target_tokens_ += outcome.target_tokens;
  }
  if (times.intended < window_begin_) {
    ++warm_up_;
    return;
  }
  if (times.sent - times.intended > kLate) ++late_;
  const auto [place, is_first] = by_status_.try_emplace(outcome.status.code());
  StatusRecord& record = place->second;
  if (is_first) record.first_message = std::string(outcome.status.message());
  record.from_intended.Record(times.ended - times.intended);
  record.from_sent.Record(times.ended - times.sent);
}

void LoadRecord::EndWindow(absl::Duration at) {
  window_end_ = std::max(window_begin_, std::min(window_end_, at));
}

int64_t LoadRecord::measured() const {
  int64_t calls = 0;
  for (const auto& [code, record] : by_status_) calls += record.from_sent.count();
  return calls;
}

}  // namespace linnet::client
