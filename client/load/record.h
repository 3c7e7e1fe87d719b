// What became of the calls of a load run.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/load/histogram.h"

namespace linnet::client {

// How a call came out.
struct CallOutcome {
  absl::Status status;
  int64_t source_tokens = 0;  // of a call that was answered
  int64_t target_tokens = 0;
};

// When, from the start of the run.
struct CallTimes {
  absl::Duration intended;  // in a closed loop, when it was sent
  absl::Duration sent;
  absl::Duration ended;
};

struct StatusRecord {
  LatencyHistogram from_intended;  // what a user waits
  LatencyHistogram from_sent;      // what the call took once there was a place for it
  std::string first_message;       // of the first call that ended so
};

// Each call of the run is counted once: as one of the warm-up, in `by_status`, or as not sent.
// Those of the window, which begins after the warm-up, are told by when they should have been sent;
// `answered_in_window` and the tokens by when they ended, so that they make a rate.
// Not thread-safe.
class LoadRecord {
 public:
  // A call is late if it was sent more than this after its time: all callers were busy.
  static constexpr absl::Duration kLate = absl::Milliseconds(1);

  LoadRecord(absl::Duration window_begin, absl::Duration window_end)
      : window_begin_(window_begin), window_end_(window_end) {}

  void Add(const CallTimes& times, const CallOutcome& outcome);
  void AddNotSent(int64_t calls) { not_sent_ += calls; }
  // The run ended before its window did, or has no end but that of its calls.
  void EndWindow(absl::Duration at);

  const std::map<absl::StatusCode, StatusRecord>& by_status() const { return by_status_; }
  int64_t measured() const;  // calls in by_status
  int64_t warm_up() const { return warm_up_; }
  int64_t not_sent() const { return not_sent_; }
  int64_t late() const { return late_; }
  absl::Duration window() const { return window_end_ - window_begin_; }
  int64_t answered_in_window() const { return answered_in_window_; }
  int64_t source_tokens() const { return source_tokens_; }
  int64_t target_tokens() const { return target_tokens_; }

 private:
  const absl::Duration window_begin_;
  absl::Duration window_end_;
  std::map<absl::StatusCode, StatusRecord> by_status_;
  int64_t warm_up_ = 0;
  int64_t not_sent_ = 0;
  int64_t late_ = 0;
  int64_t answered_in_window_ = 0;
  int64_t source_tokens_ = 0;
  int64_t target_tokens_ = 0;
};

}  // namespace linnet::client
