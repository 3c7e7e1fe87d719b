#pragma once

#include "server/base/mutex.h"

namespace linnet::test {

// A one-shot event: Pass blocks until Open has been called once. Uses our own mutex, which
// ThreadSanitizer sees.
class Notification {
 public:
  void Open() {
    server::MutexLock lock(mu_);
    open_ = true;
    changed_.NotifyAll();
  }
  void Pass() {
    server::MutexLock lock(mu_);
    while (!open_) changed_.Wait(mu_);
  }

 private:
  server::Mutex mu_;
  server::CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace linnet::test
