#include "server/rpc/timed_operations.h"

#include <grpc/grpc.h>

#include <vector>

#include "server/base/exceptions.h"
#include "server/base/log.h"

namespace linnet::server {

TimedOperations::Operation::Operation(TimedOperations& operations,
                                      const grpc::CallbackServerContext& context)
    : operations_(operations) {
  // gRPC's accessor is not const; the call itself is not changed.
  grpc_call* call = const_cast<grpc::CallbackServerContext&>(context).c_call();
  MutexLock lock(operations_.mu_);
  id_ = operations_.next_id_++;
  try {
    operations_.operations_[id_] = {MonotonicNow(), call};
  } catch (...) {
    LogException("operation_not_timed");
    return;
  }
  grpc_call_ref(call);
}

TimedOperations::Operation::~Operation() {
  grpc_call* call = nullptr;
  {
    MutexLock lock(operations_.mu_);
    const auto entry = operations_.operations_.find(id_);
    if (entry == operations_.operations_.end()) return;  // Cancel has taken it
    call = entry->second.call;
    operations_.operations_.erase(entry);
  }
  grpc_call_unref(call);
}

void TimedOperations::Cancel(MonotonicTime now) {
  std::vector<grpc_call*> calls;
  {
    MutexLock lock(mu_);
    while (!operations_.empty() && Elapsed(operations_.begin()->second.began, now) > timeout_) {
      calls.push_back(operations_.begin()->second.call);
      operations_.erase(operations_.begin());
    }
  }
  // Outside the lock: gRPC may call the calls back from here.
  for (grpc_call* call : calls) {
    grpc_call_cancel_with_status(call, GRPC_STATUS_CANCELLED, message_.c_str(), nullptr);
    grpc_call_unref(call);
  }
  if (!calls.empty())
    Log(LogLevel::kWarning, event_,
        {{"cancelled", calls.size()}, {"seconds", absl::ToDoubleSeconds(timeout_)}});
}

}  // namespace linnet::server
