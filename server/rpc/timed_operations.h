#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "server/base/monotonic.h"
#include "server/base/mutex.h"

struct grpc_call;

namespace linnet::server {

// Timeouts for reads and writes in flight. A client that does not send its request, or does not
// read its response, would otherwise hold the server's memory forever, since it still answers
// pings. Its call is cancelled. Thread-safe.
class TimedOperations {
 public:
  // One operation, from its start to the destruction of this object. Without memory it has no
  // timeout.
  class Operation {
   public:
    Operation(TimedOperations& operations, const grpc::CallbackServerContext& context);
    ~Operation();
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

   private:
    TimedOperations& operations_;
    uint64_t id_;
  };

  // An operation may take at most `timeout`; then `event` is logged and the client gets `message`.
  TimedOperations(absl::Duration timeout, std::string event, std::string message)
      : timeout_(timeout), event_(std::move(event)), message_(std::move(message)) {}

  // Cancels the calls whose operations have timed out. Call it periodically.
  void Cancel(MonotonicTime now);
  // The time `gap` before `now` does not count against the operations in flight.
  void Forgive(absl::Duration gap, MonotonicTime now);
  // Cancels the calls of all operations with UNAVAILABLE, since the server is shutting down. Later
  // ones are cancelled by the next Cancel.
  void ShutDown(MonotonicTime now);

 private:
  struct Entry {
    MonotonicTime began;
    grpc_call* call;  // our reference; it outlives the call object
  };

  const absl::Duration timeout_;
  const std::string event_;
  const std::string message_;
  Mutex mu_;
  bool shutting_down_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t next_id_ ABSL_GUARDED_BY(mu_) = 1;
  std::map<uint64_t, Entry> operations_ ABSL_GUARDED_BY(mu_);  // in the order of their start
};

}  // namespace linnet::server
