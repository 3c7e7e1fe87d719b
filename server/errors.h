#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/rpc/status.pb.h"

namespace linnet::server {

// Errors as callers of the API see them: a canonical code, a message, and details of
// google/rpc/error_details.proto that ride on the absl::Status as payloads until server/rpc turns
// it into a grpc::Status. Every error carries one ErrorInfo, whose metadata repeat the dynamic
// parts of the message.
using ErrorMetadata = std::vector<std::pair<std::string, std::string>>;

// INVALID_ARGUMENT: the caller must change `field`, a path such as "contents[3]" or
// "options.beam_size".
absl::Status BadField(absl::string_view field, absl::string_view reason, absl::string_view message,
                      ErrorMetadata metadata = {});
// NOT_FOUND: no such model or language pair. `name` is what was asked for.
absl::Status NoSuchModel(absl::string_view name, absl::string_view message);
// RESOURCE_EXHAUSTED: busy, try again after `retry_delay`.
absl::Status Busy(absl::string_view reason, absl::string_view message, absl::Duration retry_delay,
                  ErrorMetadata metadata = {});
// UNAVAILABLE: this server stops; another one may answer at once.
absl::Status ShuttingDown();

// The same error with an ErrorInfo named after its code, if it has none: for errors that rise from
// the engine.
absl::Status WithErrorInfo(absl::Status status);
// An INVALID_ARGUMENT that rose from below, put down to a field; any other status as it is.
absl::Status AtField(absl::string_view field, absl::string_view reason, absl::Status status);

// Code, message and details as they travel.
google::rpc::Status ToProto(const absl::Status& status);
// InfiniteDuration if the error carries no RetryInfo.
absl::Duration RetryDelay(const absl::Status& status);
// "" if there is none.
std::string ErrorReason(const absl::Status& status);

}  // namespace linnet::server
