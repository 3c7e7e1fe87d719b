#pragma once

#include <grpcpp/grpcpp.h>

#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "server/mutex.h"

struct grpc_call;

namespace linnet::server {

// The writes that gRPC has under way, so that a client that does not read what it asked for does
// not hold it in memory for good: its call is cancelled. Thread-safe.
class SlowReaders {
 public:
  // One write, from its beginning until this dies.
  class Write {
   public:
    Write(SlowReaders& readers, const grpc::CallbackServerContext& context);
    ~Write();
    Write(const Write&) = delete;
    Write& operator=(const Write&) = delete;

   private:
    SlowReaders& readers_;
    uint64_t id_;
  };

  // A write may take so long.
  explicit SlowReaders(absl::Duration patience) : patience_(patience) {}

  // Cancels the calls whose clients were too slow; to be called now and then.
  void Cancel(absl::Time now);

 private:
  struct Entry {
    absl::Time began;
    grpc_call* call;  // a reference of ours: it outlives the call object
  };

  const absl::Duration patience_;
  Mutex mu_;
  uint64_t next_id_ ABSL_GUARDED_BY(mu_) = 1;
  std::map<uint64_t, Entry> writes_ ABSL_GUARDED_BY(mu_);  // in the order in which they began
};

}  // namespace linnet::server
