#include "server/rpc/status.h"

#include <string>

#include "server/errors.h"

namespace linnet::server {

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  google::rpc::Status proto = ToProto(status);
  if (status.code() == absl::StatusCode::kInternal) {
    proto.set_message("the server failed to decode this text; its log says why");
  }
  return grpc::Status(static_cast<grpc::StatusCode>(proto.code()), proto.message(),
                      proto.SerializeAsString());
}

}  // namespace linnet::server
