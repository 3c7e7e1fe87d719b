#include "server/rpc/timed_operations.h"

#include <grpc/grpc.h>

#include <algorithm>
#include <vector>

#include "server/base/errors.h"
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
  bool shutting_down = false;
  std::string message;
  {
    MutexLock lock(mu_);
    shutting_down = shutting_down_;
    message = shutting_down ? std::string(ShuttingDown().message()) : message_;
    while (!operations_.empty() &&
           (shutting_down || Elapsed(operations_.begin()->second.began, now) > timeout_)) {
      calls.push_back(operations_.begin()->second.call);
      operations_.erase(operations_.begin());
    }
  }
  if (calls.empty()) return;
  const grpc_status_code code = shutting_down ? GRPC_STATUS_UNAVAILABLE : GRPC_STATUS_CANCELLED;
  // Outside the lock: gRPC may call the calls back from here.
  for (grpc_call* call : calls) {
    grpc_call_cancel_with_status(call, code, message.c_str(), nullptr);
    grpc_call_unref(call);
  }
  if (shutting_down) return;  // no fault of the clients
  Log(LogLevel::kWarning, event_,
      {{"cancelled", calls.size()}, {"seconds", absl::ToDoubleSeconds(timeout_)}});
}

void TimedOperations::Forgive(absl::Duration gap, MonotonicTime now) {
  MutexLock lock(mu_);
  // Their order stays: some may have begun within the gap.
  for (auto& [id, entry] : operations_) entry.began = std::min(now, After(entry.began, gap));
}

void TimedOperations::ShutDown(MonotonicTime now) {
  {
    MutexLock lock(mu_);
    shutting_down_ = true;
  }
  Cancel(now);
}

}  // namespace linnet::server
