#include "client/library/proxy.h"

#include <arpa/inet.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/library/channel.h"
#include "proto/loopback.h"

namespace linnet::client {
namespace {

// The addresses of `server` without a scheme and the authority of "dns://AUTHORITY/HOST:PORT".
absl::string_view Addresses(absl::string_view server) {
  for (const absl::string_view scheme : {"dns:", "ipv4:", "ipv6:", "xds:"}) {
    if (absl::ConsumePrefix(&server, scheme)) {
      server.remove_prefix(server.rfind('/') + 1);
      break;
    }
  }
  return server;
}

bool IsSocket(absl::string_view server) {
  return absl::StartsWith(server, "unix:") || absl::StartsWith(server, "unix-abstract:");
}

// True if `host` is an address of `network`, "192.0.2.0/24" or "2001:db8::/32".
bool IsInNetwork(const std::string& host, absl::string_view network) {
  const size_t slash = network.find('/');
  int bits = 0;
  if (slash == absl::string_view::npos || !absl::SimpleAtoi(network.substr(slash + 1), &bits))
    return false;
  const std::string base(network.substr(0, slash));
  for (const auto& [family, size] : {std::pair(AF_INET, 32), std::pair(AF_INET6, 128)}) {
    unsigned char first[16], second[16];
    if (bits < 0 || bits > size || inet_pton(family, base.c_str(), first) != 1 ||
        inet_pton(family, host.c_str(), second) != 1)
      continue;
    bool equal = true;
    for (int bit = 0; bit < bits; ++bit) {
      const int mask = 0x80 >> (bit % 8);
      equal = equal && ((first[bit / 8] ^ second[bit / 8]) & mask) == 0;
    }
    return equal;
  }
  return false;
}

bool IsExcluded(const std::string& host, const char* list) {
  for (absl::string_view entry : absl::StrSplit(list, ',')) {
    entry = absl::StripAsciiWhitespace(entry);
    if (entry.empty()) continue;
    if (entry == "*" || absl::EndsWithIgnoreCase(host, entry) || IsInNetwork(host, entry))
      return true;
    if (absl::ConsumePrefix(&entry, ".") && absl::EqualsIgnoreCase(host, entry)) return true;
  }
  return false;
}

}  // namespace

bool IsThisMachine(const std::string& server) {
  if (IsSocket(server)) return true;
  if (absl::StartsWith(server, "xds:")) return false;
  for (const absl::string_view address : absl::StrSplit(Addresses(server), ',')) {
    if (!IsLoopback(address)) return false;
  }
  return true;
}

std::string ServerHost(const std::string& server) {
  return std::string(HostPart(Addresses(server)));
}

std::optional<Proxy> FindProxy(const std::string& server) {
  // No proxy can connect to a list.
  if (IsThisMachine(server) || absl::StartsWith(server, "ipv") || absl::StrContains(server, ','))
    return std::nullopt;
  const char* value = nullptr;
  const char* variable = nullptr;
  for (const char* name : {"grpc_proxy", "https_proxy", "http_proxy"}) {
    value = std::getenv(name);
    variable = name;
    if (value != nullptr) break;
  }
  absl::string_view url = absl::NullSafeStringView(value);
  // gRPC takes no other scheme, and connects directly.
  if (!absl::ConsumePrefix(&url, "http://")) return std::nullopt;
  const char* excluded = std::getenv("no_grpc_proxy");
  if (excluded == nullptr) excluded = std::getenv("no_proxy");
  if (excluded != nullptr && IsExcluded(ServerHost(server), excluded)) return std::nullopt;
  url = url.substr(0, url.find('/'));
  return Proxy{std::string(url.substr(url.rfind('@') + 1)), variable};
}

}  // namespace linnet::client
