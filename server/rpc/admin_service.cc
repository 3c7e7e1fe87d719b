#include "server/rpc/admin_service.h"

#include <utility>

#include "server/rpc/unary_call.h"

namespace linnet::server {

namespace v1 = linnet::v1;
using Context = grpc::CallbackServerContext;

AdminService::AdminService(AdminCalls& calls, const CallHouse& house) {
  Serve("Reload", [&calls, house](Context* context) {
    return new UnaryCall<v1::ReloadRequest, v1::ReloadResponse, AdminCalls>(
        calls,
        [](AdminCalls& calls, const auto& request, auto& response, const CallContext&,
           AdminCalls::Done done) { calls.Reload(request, response, std::move(done)); },
        house, Method::kReload, *context);
  });
  Serve("GetBatch", [&calls, house](Context* context) {
    return new UnaryCall<v1::GetBatchRequest, v1::GetBatchResponse, AdminCalls>(
        calls,
        [](AdminCalls& calls, const auto& request, auto& response, const CallContext&,
           AdminCalls::Done done) { calls.GetBatch(request, response, std::move(done)); },
        house, Method::kGetBatch, *context);
  });
  Serve("SetLogLevel", [&calls, house](Context* context) {
    return new UnaryCall<v1::SetLogLevelRequest, v1::SetLogLevelResponse, AdminCalls>(
        calls,
        [](AdminCalls& calls, const auto& request, auto& response, const CallContext&,
           AdminCalls::Done done) { done(calls.SetLogLevel(request, response)); },
        house, Method::kSetLogLevel, *context);
  });
}

}  // namespace linnet::server
