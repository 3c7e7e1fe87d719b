#include "server/config/address.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace linnet::server {

absl::Status CheckAddress(absl::string_view address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  const absl::string_view host =
      address.substr(0, colon == absl::string_view::npos ? address.size() : colon);
  const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  // Without both brackets an IPv6 address could lose a character, and "[::1" become "::".
  const bool bad_host =
      host.empty() || (!brackets && host.find_first_of(":[]") != absl::string_view::npos);
  if (colon == absl::string_view::npos || bad_host ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", address,
                     "\" is not HOST:PORT with a port of 0 to 65535, such as "
                     "127.0.0.1:50051 or [::1]:0"));
  }
  return absl::OkStatus();
}

std::string WithPort(absl::string_view address, int port) {
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

}  // namespace linnet::server
