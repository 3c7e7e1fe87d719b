#pragma once

#include <grpcpp/grpcpp.h>

#include "linnet/v1/admin_service.grpc.pb.h"
#include "server/admin/admin_calls.h"
#include "server/rpc/call_record.h"

namespace linnet::server {

// linnet.v1.AdminService on gRPC's callback API, in raw bytes as TextService: a thin shell around
// AdminCalls. Who may call it is decided where it is served.
class AdminService : public linnet::v1::AdminService::WithRawCallbackMethod_Reload<
                         linnet::v1::AdminService::WithRawCallbackMethod_GetBatch<
                             linnet::v1::AdminService::WithRawCallbackMethod_SetLogLevel<
                                 linnet::v1::AdminService::Service>>> {
 public:
  // Both outlive the service.
  AdminService(AdminCalls& calls, const CallHouse& house) : calls_(calls), house_(house) {}

  using Context = grpc::CallbackServerContext;
  using Bytes = grpc::ByteBuffer;

  grpc::ServerUnaryReactor* Reload(Context* context, const Bytes* request,
                                   Bytes* response) override;
  grpc::ServerUnaryReactor* GetBatch(Context* context, const Bytes* request,
                                     Bytes* response) override;
  grpc::ServerUnaryReactor* SetLogLevel(Context* context, const Bytes* request,
                                        Bytes* response) override;

 private:
  AdminCalls& calls_;
  const CallHouse house_;
};

}  // namespace linnet::server
