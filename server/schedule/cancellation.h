#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "server/base/mutex.h"

namespace linnet::server {

class Cancellation;

// The cancellations set since the last Take. Thread-safe.
class CancelledCalls {
 public:
  void Add(const Cancellation* cancellation) {
    MutexLock lock(mu_);
    try {
      cancelled_.push_back(cancellation);
    } catch (const std::bad_alloc&) {
      return;  // its waiting sequences end once they run
    }
    any_.store(true, std::memory_order_release);
  }
  // A pointer may be dangling, or a newer object may live at its address: compare it with the
  // pointers that the caller holds before any use.
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

// A flag that is set once when a call is cancelled. Shared by the call and its sequences.
// Thread-safe.
class Cancellation {
 public:
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  void Cancel() {
    std::vector<std::shared_ptr<CancelledCalls>> listeners;
    {
      MutexLock lock(mu_);
      if (cancelled_.exchange(true, std::memory_order_relaxed)) return;
      listeners = std::move(listeners_);
    }
    for (const auto& listener : listeners) listener->Add(this);
  }

  // Adds itself to the listener when it is cancelled, or now if it already is. A call has one
  // listener for each model that answers it. The listener is a shared_ptr because Cancel may run
  // after the queue that owned the listener was destroyed.
  void AddListener(std::shared_ptr<CancelledCalls> listener) {
    {
      MutexLock lock(mu_);
      if (!cancelled()) {
        if (std::find(listeners_.begin(), listeners_.end(), listener) == listeners_.end())
          listeners_.push_back(std::move(listener));
        return;
      }
    }
    listener->Add(this);
  }

 private:
  std::atomic<bool> cancelled_ = false;
  Mutex mu_;
  std::vector<std::shared_ptr<CancelledCalls>> listeners_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
