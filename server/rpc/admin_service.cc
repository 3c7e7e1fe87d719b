#include "server/rpc/admin_service.h"

#include <utility>

#include "server/rpc/unary_call.h"

namespace linnet::server {

namespace v1 = linnet::v1;
using Context = grpc::CallbackServerContext;

AdminService::AdminService(AdminCalls& calls, const CallServices& services) {
  Serve("Reload", [&calls, services](Context* context) {
    return new UnaryCall<v1::ReloadRequest, v1::ReloadResponse, AdminCalls>(
        calls,
        [](AdminCalls& calls, const auto& request, auto& response, const CallContext&,
           AdminCalls::Done done) { calls.Reload(request, response, std::move(done)); },
        services, Method::kReload, *context);
  });
  Serve("GetBatch", [&calls, services](Context* context) {
    return new UnaryCall<v1::GetBatchRequest, v1::GetBatchResponse, AdminCalls>(
        calls,
        [](AdminCalls& calls, const auto& request, auto& response, const CallContext&,
           AdminCalls::Done done) { calls.GetBatch(request, response, std::move(done)); },
        services, Method::kGetBatch, *context);
  });
  Serve("SetLogLevel", [&calls, services](Context* context) {
    return new UnaryCall<v1::SetLogLevelRequest, v1::SetLogLevelResponse, AdminCalls>(
        calls,
        [](AdminCalls& calls, const auto& request, auto& response, const CallContext&,
           AdminCalls::Done done) { done(calls.SetLogLevel(request, response)); },
        services, Method::kSetLogLevel, *context);
  });
}

}  // namespace linnet::server
