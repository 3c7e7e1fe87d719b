#include "server/rpc/slow_readers.h"

#include <grpc/grpc.h>

#include <vector>

#include "absl/time/clock.h"
#include "server/log.h"

namespace linnet::server {

SlowReaders::Write::Write(SlowReaders& readers, const grpc::CallbackServerContext& context)
    : readers_(readers) {
  // gRPC's accessor is not const; the call itself is not changed.
  grpc_call* call = const_cast<grpc::CallbackServerContext&>(context).c_call();
  grpc_call_ref(call);
  MutexLock lock(readers_.mu_);
  id_ = readers_.next_id_++;
  readers_.writes_[id_] = {absl::Now(), call};
}

SlowReaders::Write::~Write() {
  grpc_call* call = nullptr;
  {
    MutexLock lock(readers_.mu_);
    const auto entry = readers_.writes_.find(id_);
    if (entry == readers_.writes_.end()) return;  // Cancel has it
    call = entry->second.call;
    readers_.writes_.erase(entry);
  }
  grpc_call_unref(call);
}

void SlowReaders::Cancel(absl::Time now) {
  std::vector<grpc_call*> calls;
  {
    MutexLock lock(mu_);
    while (!writes_.empty() && now - writes_.begin()->second.began > patience_) {
      calls.push_back(writes_.begin()->second.call);
      writes_.erase(writes_.begin());
    }
  }
  // Outside the lock: gRPC may call the calls back from here.
  for (grpc_call* call : calls) {
    grpc_call_cancel_with_status(call, GRPC_STATUS_CANCELLED,
                                 "the client did not read what it asked for", nullptr);
    grpc_call_unref(call);
  }
  if (!calls.empty())
    Log(LogLevel::kWarning, "slow_readers",
        {{"cancelled", calls.size()}, {"seconds", absl::ToDoubleSeconds(patience_)}});
}

}  // namespace linnet::server
