#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace linnet::client {

// Fetches "http://HOST:PORT/PATH" and returns the body. Implements HTTP/1.0, where the end of the
// connection ends the body, which suffices for a page of metrics: gRPC's HTTP client is not public,
// and civetweb, on which the server's page runs, would be a library that the client's package does
// not need otherwise. INVALID_ARGUMENT if `url` has another form; UNAVAILABLE if there is no answer
// in time or its status is not 200.
absl::StatusOr<std::string> HttpGet(const std::string& url, absl::Duration timeout);

}  // namespace linnet::client
