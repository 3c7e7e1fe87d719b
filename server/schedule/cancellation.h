#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "server/base/mutex.h"

namespace linnet::server {

class Cancellation;

// Cancellations that came since somebody looked. Thread-safe.
class CancelledCalls {
 public:
  void Add(const Cancellation* cancellation) {
    MutexLock lock(mu_);
    cancelled_.push_back(cancellation);
    any_.store(true, std::memory_order_release);
  }
  // May name one that is gone, or another one at its address: the taker compares with its own.
  std::vector<const Cancellation*> Take() {
    if (!any_.load(std::memory_order_acquire)) return {};
    MutexLock lock(mu_);
    any_.store(false, std::memory_order_relaxed);
    return std::exchange(cancelled_, {});
  }

 private:
  std::atomic<bool> any_ = false;
  Mutex mu_;
  std::vector<const Cancellation*> cancelled_ ABSL_GUARDED_BY(mu_);
};

// Whether the result of a call is not wanted any more. Thread-safe.
class Cancellation {
 public:
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  void Cancel() {
    std::shared_ptr<CancelledCalls> listener;
    {
      MutexLock lock(mu_);
      if (cancelled_.exchange(true, std::memory_order_relaxed)) return;
      listener = std::move(listener_);
    }
    if (listener != nullptr) listener->Add(this);
  }

  // Names itself there once it is cancelled, or now if it is. The listener is shared because a
  // cancel may come when the batcher that waits for it has gone.
  void Tell(std::shared_ptr<CancelledCalls> listener) {
    {
      MutexLock lock(mu_);
      if (!cancelled()) {
        listener_ = std::move(listener);
        return;
      }
    }
    listener->Add(this);
  }

 private:
  std::atomic<bool> cancelled_ = false;
  Mutex mu_;
  std::shared_ptr<CancelledCalls> listener_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
