#pragma once

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"

namespace linnet::server {

// The only place that makes a grpc::Status: code, message, and the details as a serialised
// google.rpc.Status.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace linnet::server
