#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "server/base/exceptions.h"
#include "server/base/monotonic.h"
#include "server/base/mutex.h"

namespace linnet::server {

// Calls a function periodically, by the monotonic clock, on a thread of its own, until it is
// destroyed. An exception of the function is logged as tick_failed; the next call is due as ever.
class Ticker {
 public:
  Ticker(absl::Duration period, std::function<void()> tick)
      : period_(period), tick_(std::move(tick)), thread_([this] { Run(); }) {}
  ~Ticker() {
    {
      MutexLock lock(mu_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }

 private:
  void Run() {
    while (true) {
      try {
        tick_();
      } catch (...) {
        LogException("tick_failed");
      }
      const MonotonicTime next = After(MonotonicNow(), period_);
      MutexLock lock(mu_);
      while (!stopping_ && changed_.WaitUntil(mu_, next)) {
      }
      if (stopping_) return;
    }
  }

  const absl::Duration period_;
  const std::function<void()> tick_;
  Mutex mu_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace linnet::server
