#pragma once

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "server/base/monotonic.h"
#include "server/base/mutex.h"

namespace linnet::server {

// Thrown on the watched thread when a call returns after it was declared stalled. It unwinds all
// callers, because the thread that declared the stall has taken over their state.
struct StalledCall {};

// Times the calls of one thread, of which one is in progress at a time. Thread-safe.
class StallDetector {
 public:
  // `clock` tells when a call begins.
  explicit StallDetector(std::function<MonotonicTime()> clock = MonotonicNow)
      : clock_(std::move(clock)) {}

  // Runs `call` on the watched thread. Throws StalledCall if the call was declared stalled before
  // it returned.
  template <typename Call>
  auto Watch(absl::Duration timeout, const Call& call) -> decltype(call()) {
    Begin(timeout);
    decltype(call()) result = Catching(call);
    End();
    return result;
  }

  // For any other thread: declares the call in progress stalled if it has exceeded its timeout.
  // Returns true once.
  bool DeclareStalled(MonotonicTime now) {
    MutexLock lock(mu_);
    if (stalled_ || !in_call_ || Elapsed(began_, now) < timeout_) return false;
    stalled_ = true;
    return true;
  }
  // For any other thread: the time `gap` before `now` does not count against the call in progress.
  void Forgive(absl::Duration gap, MonotonicTime now) {
    MutexLock lock(mu_);
    began_ = std::min(now, After(began_, gap));  // it may have begun within the gap
  }
  bool stalled() const {
    MutexLock lock(mu_);
    return stalled_;
  }
  // Duration of the call in progress so far; zero if there is none.
  absl::Duration in_call_for(MonotonicTime now) const {
    MutexLock lock(mu_);
    return in_call_ ? Elapsed(began_, now) : absl::ZeroDuration();
  }

 private:
  // An exception ends the call as well.
  template <typename Call>
  auto Catching(const Call& call) -> decltype(call()) {
    try {
      return call();
    } catch (...) {
      End();
      throw;
    }
  }
  void Begin(absl::Duration timeout) {
    MutexLock lock(mu_);
    if (stalled_) throw StalledCall();
    in_call_ = true;
    began_ = clock_();
    timeout_ = timeout;
  }
  void End() {
    MutexLock lock(mu_);
    in_call_ = false;
    if (stalled_) throw StalledCall();
  }

  const std::function<MonotonicTime()> clock_;
  mutable Mutex mu_;
  bool in_call_ ABSL_GUARDED_BY(mu_) = false;
  bool stalled_ ABSL_GUARDED_BY(mu_) = false;
  MonotonicTime began_ ABSL_GUARDED_BY(mu_);
  absl::Duration timeout_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
