#pragma once

#include <algorithm>
#include <cstddef>

#include "absl/time/time.h"

namespace linnet::client {

// Decides how much of an input is sent at once: the backpressure of a run over many texts.
//
// A request of the full size fills a batch of the server and is small enough to show progress, and
// several are in flight, so that the server does not wait for the client between them. A server
// that is too busy or too slow for that gets fewer requests, then smaller ones. After successes it
// gets more again, but never again a size that it alone could not answer in time. Not thread-safe.
class RequestWindow {
 public:
  static constexpr size_t kMaxTexts = 64;
  static constexpr size_t kMaxInFlight = 4;

  size_t max_texts() const { return texts_; }
  size_t max_in_flight() const { return in_flight_; }
  // The pause before a request that was refused alone is sent again.
  absl::Duration pause() const { return pause_; }

  void Succeeded() {
    pause_ = kFirstPause;
    if (++successes_ < kSuccessesToGrow) return;
    successes_ = 0;
    if (texts_ < fitting_texts_) {
      texts_ = std::min(2 * texts_, fitting_texts_);
    } else {
      in_flight_ = std::min(in_flight_ + 1, kMaxInFlight);
    }
  }

  // A request of `texts` was refused because the server is busy, or because it might be answered
  // too late, while others of this run were in flight or `alone`.
  void Refused(size_t texts, bool alone) {
    successes_ = 0;
    in_flight_ = std::max<size_t>(in_flight_ / 2, 1);
    if (!alone) return;
    texts_ = std::max<size_t>(std::min(texts_, texts) / 2, 1);
    pause_ = std::min(2 * pause_, kMaxPause);
  }

  // A request of `texts` that was alone took too long: it is in vain to send so many again.
  void RecordTimeout(size_t texts) {
    Refused(texts, /*alone=*/true);
    fitting_texts_ = texts_;
  }

 private:
  static constexpr int kSuccessesToGrow = 8;
  static constexpr absl::Duration kFirstPause = absl::Milliseconds(50);
  static constexpr absl::Duration kMaxPause = absl::Seconds(5);

  size_t texts_ = kMaxTexts;
  size_t fitting_texts_ = kMaxTexts;
  size_t in_flight_ = kMaxInFlight;
  int successes_ = 0;
  absl::Duration pause_ = kFirstPause;
};

}  // namespace linnet::client
