#pragma once

#include <string>

#include "absl/status/status.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/support/status.h"

namespace linnet::client {

// The status of a call as absl::Status: same code, same message, each google.rpc detail a payload
// under its type URL.
absl::Status FromGrpc(const grpc::Status& status);

// The same of an error that came inside a message.
absl::Status FromRpc(const google::rpc::Status& status);

// True if a detail came along. Linnet's servers send one with every error, so an error without was
// made on the way.
bool HasDetails(const absl::Status& status);

// gRPC's own "Received message larger than max" is RESOURCE_EXHAUSTED without details, as if a
// retry could help: of a request it becomes INVALID_ARGUMENT with the reason MESSAGE_TOO_LARGE, of
// an answer beyond `max_reply_bytes` OUT_OF_RANGE with REPLY_TOO_LARGE. Others come back as they
// are.
absl::Status NameTooLarge(const absl::Status& status, int64_t max_reply_bytes);

}  // namespace linnet::client
