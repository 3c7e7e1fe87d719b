#include "client/library/cancellation.h"

namespace linnet::client {

bool Cancellation::State::Add(grpc::ClientContext* context) {
  absl::MutexLock lock(&mu_);
  if (!cancelled_) calls_.insert(context);
  return !cancelled_;
}

void Cancellation::State::Remove(grpc::ClientContext* context) {
  absl::MutexLock lock(&mu_);
  calls_.erase(context);
}

void Cancellation::State::Cancel() {
  absl::MutexLock lock(&mu_);
  cancelled_ = true;
  // TryCancel only marks a call: gRPC runs the callbacks of asynchronous calls in its own threads
  // (they are not "inlineable"), never inside TryCancel. So the lock may be held, and it keeps the
  // contexts alive.
  for (grpc::ClientContext* context : calls_) context->TryCancel();
}

bool Cancellation::State::cancelled() const {
  absl::MutexLock lock(&mu_);
  return cancelled_;
}

Cancellation::Cancellation() : state_(std::make_shared<State>()) {}

void Cancellation::Cancel() const { state_->Cancel(); }

}  // namespace linnet::client
