#pragma once

#include <string>

#include "absl/status/status.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/support/status.h"

namespace linnet::client {

// Converts the status of a call to absl::Status: same code, same message, each google.rpc detail a
// payload under its type URL.
absl::Status FromGrpc(const grpc::Status& status);

// Converts an error inside a message in the same way.
absl::Status FromRpc(const google::rpc::Status& status);

// True if the status has details. Linnet's servers send some with every error, so an error without
// details was made on the way.
bool HasDetails(const absl::Status& status);

// Replaces gRPC's "Received message larger than max", which is RESOURCE_EXHAUSTED as if a retry
// could help: for a request by INVALID_ARGUMENT with reason MESSAGE_TOO_LARGE, for a reply beyond
// `max_reply_bytes` by OUT_OF_RANGE with REPLY_TOO_LARGE. The size of the request decides where the
// server has the same limit. Returns any other status unchanged.
absl::Status NameTooLarge(const absl::Status& status, int64_t max_reply_bytes,
                          int64_t request_bytes);

}  // namespace linnet::client
