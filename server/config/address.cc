#include "server/config/address.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace linnet::server {

absl::Status CheckAddress(absl::string_view address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  const absl::string_view host =
      address.substr(0, colon == absl::string_view::npos ? address.size() : colon);
  const bool bare_ipv6 = host.find(':') != absl::string_view::npos && host.front() != '[';
  if (colon == absl::string_view::npos || host.empty() || bare_ipv6 ||
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
