#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "server/base/monotonic.h"
#include "server/base/mutex.h"

namespace linnet::server {

// Thrown on a thread whose call returned after it had been declared stalled: through the frames of
// whoever called, so that none of them touches anything any more. What they worked on belongs to
// the thread that declared the stall.
struct StalledCall {};

// The calls of one thread, one after the other, and whether the one in progress takes too long.
class StallDetector {
 public:
  // Runs `call` on the thread that is watched. Throws StalledCall if it was declared stalled
  // before it returned.
  template <typename Call>
  auto Watch(absl::Duration timeout, const Call& call) -> decltype(call()) {
    Begin(timeout);
    decltype(call()) result = call();
    End();
    return result;
  }

  // For any other thread. True once: if the call in progress has taken longer than its timeout.
  bool DeclareStalled(MonotonicTime now) {
    MutexLock lock(mu_);
    if (stalled_ || !in_call_ || Elapsed(began_, now) < timeout_) return false;
    stalled_ = true;
    return true;
  }
  bool stalled() const {
    MutexLock lock(mu_);
    return stalled_;
  }
  // How long the call in progress has taken; zero if there is none.
  absl::Duration in_call_for(MonotonicTime now) const {
    MutexLock lock(mu_);
    return in_call_ ? Elapsed(began_, now) : absl::ZeroDuration();
  }

 private:
  void Begin(absl::Duration timeout) {
    MutexLock lock(mu_);
    if (stalled_) throw StalledCall();
    in_call_ = true;
    began_ = MonotonicNow();
    timeout_ = timeout;
  }
  void End() {
    MutexLock lock(mu_);
    in_call_ = false;
    if (stalled_) throw StalledCall();
  }

  mutable Mutex mu_;
  bool in_call_ ABSL_GUARDED_BY(mu_) = false;
  bool stalled_ ABSL_GUARDED_BY(mu_) = false;
  MonotonicTime began_ ABSL_GUARDED_BY(mu_);
  absl::Duration timeout_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
