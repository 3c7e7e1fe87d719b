#include "server/rpc/admin_service.h"

#include <utility>

#include "server/rpc/unary_call.h"

namespace linnet::server {

namespace v1 = linnet::v1;

grpc::ServerUnaryReactor* AdminService::Reload(Context* context, const Bytes* request,
                                               Bytes* response) {
  return new UnaryCall<v1::ReloadRequest, v1::ReloadResponse, AdminCalls>(
      calls_,
      [](AdminCalls& calls, const auto& request, auto& response, const CallContext&,
         AdminCalls::Done done) { calls.Reload(request, response, std::move(done)); },
      house_, Method::kReload, *context, *request, *response);
}

grpc::ServerUnaryReactor* AdminService::GetBatch(Context* context, const Bytes* request,
                                                 Bytes* response) {
  return new UnaryCall<v1::GetBatchRequest, v1::GetBatchResponse, AdminCalls>(
      calls_,
      [](AdminCalls& calls, const auto& request, auto& response, const CallContext&,
         AdminCalls::Done done) { calls.GetBatch(request, response, std::move(done)); },
      house_, Method::kGetBatch, *context, *request, *response);
}

grpc::ServerUnaryReactor* AdminService::SetLogLevel(Context* context, const Bytes* request,
                                                    Bytes* response) {
  return new UnaryCall<v1::SetLogLevelRequest, v1::SetLogLevelResponse, AdminCalls>(
      calls_,
      [](AdminCalls& calls, const auto& request, auto& response, const CallContext&,
         AdminCalls::Done done) { done(calls.SetLogLevel(request, response)); },
      house_, Method::kSetLogLevel, *context, *request, *response);
}

}  // namespace linnet::server
