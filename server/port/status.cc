#include "server/port/status.h"

#include "server/base/errors.h"

namespace linnet::server {

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const google::rpc::Status proto = ToProto(status);
  return grpc::Status(static_cast<grpc::StatusCode>(proto.code()), proto.message(),
                      proto.SerializeAsString());
}

}  // namespace linnet::server
