#pragma once

#include <string>

#include "absl/time/time.h"

namespace linnet::client {

// The value of a command line's flag: "90" are seconds; otherwise as abseil has it: "500ms",
// "1m30s". Throws CLI::ValidationError, which names the flag, if it is neither.
absl::Duration ParseDuration(const char* flag, const std::string& text);

}  // namespace linnet::client
