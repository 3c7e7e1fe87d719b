// The outcomes of the calls of a load run.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/run/histogram.h"

namespace linnet::client {

// The way in which a caller abandons a call.
enum class Abandonment { kNone, kDeadline, kCancel, kDisconnect };
inline constexpr size_t kAbandonmentKinds = 4;

// The outcome of a call.
struct CallOutcome {
  absl::Status status;
  int64_t texts = 0;  // of an answered call, as the tokens
  int64_t source_tokens = 0;
  int64_t target_tokens = 0;
  size_t kind = 0;                               // index of the kind of call
  Abandonment abandonment = Abandonment::kNone;  // set if the call was abandoned as planned
};

// Times of a call since the start of the run.
struct CallTimes {
  absl::Duration intended;  // the due time; in a closed loop the same as `sent`
  absl::Duration sent;
  absl::Duration ended;
};

struct StatusRecord {
  LatencyHistogram from_intended;  // latency as a user sees it
  LatencyHistogram from_sent;      // duration of the call itself
  std::string first_message;       // of the first call with this status
};

struct KindRecord {
  int64_t calls = 0;
  int64_t answered = 0;
  int64_t target_tokens = 0;
  LatencyHistogram latency;  // of the answered calls, from their due time
};

// The calls of a time window of the run. Each call is counted once: in `warm_up`, `by_status`,
// `abandoned` or `not_sent`. Its due time decides whether it is in the window; for
// `answered_in_window` and the tokens its end does, so that they make a rate. Not thread-safe.
class LoadRecord {
 public:
  // A call is late if it was sent more than this after its due time because all callers were busy.
  static constexpr absl::Duration kLate = absl::Milliseconds(1);

  LoadRecord(absl::Duration window_begin, absl::Duration window_end)
      : window_begin_(window_begin), window_end_(window_end) {}

  void Add(const CallTimes& times, const CallOutcome& outcome);
  void AddNotSent(absl::Duration intended);
  // Shortens the window to a run that ended earlier.
  void EndWindow(absl::Duration at);

  const std::map<absl::StatusCode, StatusRecord>& by_status() const { return by_status_; }
  const std::map<size_t, KindRecord>& by_kind() const { return by_kind_; }
  int64_t measured() const;                     // calls in by_status
  int64_t warm_up() const { return warm_up_; }  // due before the window
  int64_t not_sent() const { return not_sent_; }
  int64_t late() const { return late_; }
  int64_t abandoned(Abandonment kind) const { return abandoned_[static_cast<size_t>(kind)]; }
  int64_t abandoned() const;
  // All calls due in the window.
  int64_t offered() const { return measured() + abandoned() + not_sent(); }
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
  std::array<int64_t, kAbandonmentKinds> abandoned_ = {};
  int64_t warm_up_ = 0;
  int64_t not_sent_ = 0;
  int64_t late_ = 0;
  int64_t answered_in_window_ = 0;
  int64_t texts_ = 0;
  int64_t source_tokens_ = 0;
  int64_t target_tokens_ = 0;
};

}  // namespace linnet::client
