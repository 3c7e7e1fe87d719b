#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace linnet::server {

// Accepts HOST:PORT and [IPv6]:PORT with a port of 0 to 65535; InvalidArgumentError otherwise.
absl::Status CheckAddress(absl::string_view address);
// Returns the address with the port replaced by the one that the system picked.
std::string WithPort(absl::string_view address, int port);

}  // namespace linnet::server
