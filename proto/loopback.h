// The addresses of this machine, for server and client (see status_macros.h for why it is here).
#pragma once

#include <arpa/inet.h>

#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace linnet {

// The host of HOST:PORT, [IPv6]:PORT or HOST, without the brackets of an IPv6.
inline absl::string_view HostPart(absl::string_view address) {
  if (!address.empty() && address[0] == '[') {
    const size_t end = address.find(']');
    return end == absl::string_view::npos ? "" : address.substr(1, end - 1);
  }
  const size_t colon = address.find(':');
  // Several colons without brackets are an IPv6 without a port.
  return colon == address.rfind(':') ? address.substr(0, colon) : address;
}

// True if the host of HOST:PORT is this machine in any spelling that a resolver takes: "localhost"
// in any case and with the dot of the root, 127.0.0.1 or 127.1, ::1 in any form, and
// ::ffff:127.0.0.1. A name that only begins like an address, such as 127.0.0.1.example.org, is
// another machine.
inline bool IsLoopback(absl::string_view address) {
  const std::string host(HostPart(address));
  if (absl::EqualsIgnoreCase(host, "localhost") || absl::EqualsIgnoreCase(host, "localhost."))
    return true;
  in6_addr six;
  if (inet_pton(AF_INET6, host.c_str(), &six) == 1) {
    return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
  }
  // inet_aton ignores what stands behind a blank.
  in_addr four;
  return !host.empty() && host.find_first_of(" \t\r\n\v\f") == std::string::npos &&
         inet_aton(host.c_str(), &four) != 0 && ntohl(four.s_addr) >> 24 == 127;
}

}  // namespace linnet
