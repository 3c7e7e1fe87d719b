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

// Reads or writes that gRPC has in flight and that the client must bring to an end in time: one
// that does not send its request, or does not read its answer, would have the server hold it for
// good, since it answers pings all the while. Its call is cancelled. Thread-safe.
class TimedOperations {
 public:
  // One of them, from its beginning until this dies.
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

  // An operation may take so long. The log has `event`, the client gets `message`.
  TimedOperations(absl::Duration timeout, std::string event, std::string message)
      : timeout_(timeout), event_(std::move(event)), message_(std::move(message)) {}

  // Cancels the calls whose clients were too slow; to be called now and then.
  void Cancel(MonotonicTime now);

 private:
  struct Entry {
    MonotonicTime began;
    grpc_call* call;  // a reference of ours: it outlives the call object
  };

  const absl::Duration timeout_;
  const std::string event_;
  const std::string message_;
  Mutex mu_;
  uint64_t next_id_ ABSL_GUARDED_BY(mu_) = 1;
  std::map<uint64_t, Entry> operations_ ABSL_GUARDED_BY(mu_);  // in the order in which they began
};

}  // namespace linnet::server
