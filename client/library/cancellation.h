#pragma once

#include <unordered_set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/library/client.h"
#include "grpcpp/client_context.h"

namespace linnet::client {

// The calls in flight that a Cancellation ends. Thread-safe.
class Cancellation::State {
 public:
  // Returns false and adds nothing once cancelled. Otherwise `context` must live until Remove.
  bool Add(grpc::ClientContext* context);
  void Remove(grpc::ClientContext* context);
  void Cancel();
  bool cancelled() const;

 private:
  mutable absl::Mutex mu_;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  std::unordered_set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::client
