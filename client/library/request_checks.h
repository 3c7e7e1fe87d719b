#pragma once

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace linnet::client {

// INVALID_ARGUMENT if a string of the request is not UTF-8, with the path of its field:
// "pairs[2].source_text".
absl::Status CheckStrings(const google::protobuf::Message& request);

// INVALID_ARGUMENT if the id has more than 128 characters or others than visible ASCII: gRPC
// metadata cannot carry those.
absl::Status CheckRequestId(const std::string& request_id);

}  // namespace linnet::client
