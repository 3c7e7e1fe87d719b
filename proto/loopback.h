// The addresses of this machine, for server and client (see status_macros.h for why it is here).
#pragma once

#include <arpa/inet.h>

#include <string>

#include "absl/strings/string_view.h"

namespace linnet {

// True if HOST:PORT is a loopback address. A name that only begins like an address, such as
// 127.0.0.1.example.org, is another machine.
inline bool IsLoopback(absl::string_view address) {
  const std::string host(address.substr(0, address.rfind(':')));
  unsigned char ip[4];
  return host == "localhost" || host == "[::1]" ||
         (inet_pton(AF_INET, host.c_str(), ip) == 1 && ip[0] == 127);
}

}  // namespace linnet
