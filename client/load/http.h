#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace linnet::client {

// The body that "http://HOST:PORT/PATH" answers: enough of HTTP (version 1.0,
// where the end of the connection is the end of the body) for a page of
// metrics. INVALID_ARGUMENT if it is no such address; UNAVAILABLE if nobody
// answers in time, or with another status than 200.
absl::StatusOr<std::string> HttpGet(const std::string& url, absl::Duration timeout);

}  // namespace linnet::client
