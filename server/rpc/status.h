#pragma once

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"

namespace linnet::server {

// The one place where a grpc::Status is made: code, message, and the details as a serialised
// google.rpc.Status.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace linnet::server
