#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace linnet::server {

// Parses a message of the API and rejects what protobuf would drop or not explain. INVALID_ARGUMENT
// names the field whose text is not UTF-8 (protobuf only reports a malformed message).
// UNIMPLEMENTED gives the number of an unknown field, at any depth (protobuf would silently keep
// it).
absl::Status ParseRequest(absl::string_view bytes, google::protobuf::Message& message);

// Upper bound on the memory of the parsed message, computed from its bytes alone: two bytes may
// become a hundred.
int64_t ParsedBytes(absl::string_view bytes, const google::protobuf::Descriptor& descriptor);

}  // namespace linnet::server
