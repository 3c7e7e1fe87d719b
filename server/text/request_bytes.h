#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace linnet::server {

// Parses a message of the API and refuses what it would otherwise lose. INVALID_ARGUMENT names the
// field whose text is not UTF-8, which protobuf itself only calls malformed; UNIMPLEMENTED the
// number of a field, at any depth, that the message does not have (protobuf would keep it and say
// nothing).
absl::Status ParseRequest(absl::string_view bytes, google::protobuf::Message& message);

// An upper bound on the memory that the message takes once it is parsed, told from its bytes alone:
// two bytes may become a hundred.
int64_t ParsedBytes(absl::string_view bytes, const google::protobuf::Descriptor& descriptor);

}  // namespace linnet::server
