#pragma once

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "server/base/mutex.h"
#include "server/schedule/batch_snapshot.h"

namespace linnet::server {

// Requests for snapshots of a batch, for the debug RPC, until somebody answers them. The scheduler
// owns it. Thread-safe; callbacks are called with no lock held.
class BatchView {
 public:
  using Callback = absl::AnyInvocable<void(const BatchSnapshot&)>;

  void Ask(int max, Callback callback) {
    MutexLock lock(mu_);
    requests_.push_back({max, std::move(callback)});
  }
  bool asked() const {
    MutexLock lock(mu_);
    return !requests_.empty();
  }
  // Passes `snapshot(max)` to each request.
  void Answer(absl::FunctionRef<BatchSnapshot(int max)> snapshot) {
    std::vector<Request> requests;
    {
      MutexLock lock(mu_);
      requests.swap(requests_);
    }
    for (Request& request : requests) request.callback(snapshot(request.max));
  }
  // The same where there is no batch to be seen.
  void AnswerEmpty() {
    Answer([](int) { return BatchSnapshot(); });
  }

 private:
  struct Request {
    int max;
    Callback callback;
  };
  mutable Mutex mu_;
  std::vector<Request> requests_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
