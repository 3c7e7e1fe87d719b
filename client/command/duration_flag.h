#pragma once

#include <string>

#include "absl/time/time.h"

namespace linnet::client {

// Parses the value of a flag: "90" is in seconds, otherwise abseil's syntax: "500ms", "1m30s".
// Throws CLI::ValidationError, which names the flag, if it is neither.
absl::Duration ParseDuration(const char* flag, const std::string& text);

}  // namespace linnet::client
