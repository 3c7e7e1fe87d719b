// What became of the calls of a load run.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/load/histogram.h"

namespace linnet::client {

// How a caller goes who does not wait for the answer.
enum class AbandonedBy { kNone, kDeadline, kCancel, kDisconnect };
inline constexpr size_t kAbandonedBy = 4;

// How a call came out.
struct CallOutcome {
  absl::Status status;
  int64_t texts = 0;  // of a call that was answered, as what follows
  int64_t source_tokens = 0;
  int64_t target_tokens = 0;
  size_t kind = 0;                        // which of the kinds of calls
  AbandonedBy left = AbandonedBy::kNone;  // the caller left, as it was meant to
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

struct KindRecord {
  int64_t calls = 0;
  int64_t answered = 0;
  int64_t target_tokens = 0;
  LatencyHistogram latency;  // from the time due, of those answered
};

// The calls of a window of the run. Each is counted once: as one of before, in
// `by_status`, as one that left, or as not sent. They are told by when they
// should have been sent; `answered_in_window` and the tokens by when they
// ended, so that they make a rate. Not thread-safe.
class LoadRecord {
 public:
  // A call is late if it was sent more than this after its time: all callers
  // were busy.
  static constexpr absl::Duration kLate = absl::Milliseconds(1);

  LoadRecord(absl::Duration window_begin, absl::Duration window_end)
      : window_begin_(window_begin), window_end_(window_end) {}

  void Add(const CallTimes& times, const CallOutcome& outcome);
  void AddNotSent(absl::Duration intended);
  // The run ended before its window did, or has no end but that of its calls.
  void EndWindow(absl::Duration at);

  const std::map<absl::StatusCode, StatusRecord>& by_status() const { return by_status_; }
  const std::map<size_t, KindRecord>& by_kind() const { return by_kind_; }
  int64_t measured() const;                     // calls in by_status
  int64_t warm_up() const { return warm_up_; }  // due before the window
  int64_t not_sent() const { return not_sent_; }
  int64_t late() const { return late_; }
  int64_t left(AbandonedBy how) const { return left_[static_cast<size_t>(how)]; }
  int64_t left() const;
  // Calls due in the window, whatever became of them.
  int64_t offered() const { return measured() + left() + not_sent(); }
  absl::Duration begin() const { return window_begin_; }
  absl::Duration window() const { return window_end_ - window_begin_; }
  int64_t answered_in_window() const { return answered_in_window_; }
  int64_t texts() const { return texts_; }
  int64_t source_tokens() const { return source_tokens_; }
  int64_t target_tokens() const { return target_tokens_; }

 private:
  bool InWindow(absl::Duration time) const { return window_begin_ <= time && time < window_end_; }

  absl::Duration window_begin_;
  absl::Duration window_end_;
  std::map<absl::StatusCode, StatusRecord> by_status_;
  std::map<size_t, KindRecord> by_kind_;
  std::array<int64_t, kAbandonedBy> left_ = {};
  int64_t warm_up_ = 0;
  int64_t not_sent_ = 0;
  int64_t late_ = 0;
  int64_t answered_in_window_ = 0;
  int64_t texts_ = 0;
  int64_t source_tokens_ = 0;
  int64_t target_tokens_ = 0;
};

}  // namespace linnet::client
