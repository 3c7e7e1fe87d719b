#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/identity/authentication.h"

namespace linnet::server {

// "127.0.0.1:4711" of gRPC's "ipv4:127.0.0.1:4711", "[fe80::1%eth0]:4711" of
// "ipv6:%5Bfe80::1%25eth0%5D:4711"; what is neither stays as it is.
std::string PeerAddress(absl::string_view peer);

// The proxies whose word is taken for who is behind them: addresses and networks. Immutable.
class TrustedProxies {
 public:
  // Headers that such a proxy sets, and takes away where its client has sent them.
  static constexpr char kForwardedFor[] = "x-forwarded-for";
  static constexpr char kCertificateSubject[] = "x-client-certificate-subject";

  // "10.1.2.3, 192.0.2.0/24, 2001:db8::/32"; "" trusts nobody. INVALID_ARGUMENT for anything else.
  static absl::StatusOr<TrustedProxies> Parse(absl::string_view list);

  bool empty() const { return networks_.empty(); }
  // `address` as gRPC writes it: "ipv4:127.0.0.1:4711", "ipv6:%5B::1%5D:4711".
  bool Trusts(absl::string_view address) const;

  // Who makes a call on a connection. Behind a trusted proxy it is the last address that the proxy
  // put into x-forwarded-for (those before it are what its client says), and the subject of a
  // certificate that the proxy has verified; the certificate of the proxy itself names no caller.
  // The headers of anybody else say nothing.
  struct Client {
    std::string address;  // as gRPC writes it
    std::string certificate_subject;
  };
  Client ClientOf(Headers headers, const Peer& connection) const;

 private:
  struct Network {
    bool ipv6;
    int prefix;                       // bits that count
    std::array<uint8_t, 16> address;  // an IPv4 one is in the first four bytes
  };
  std::vector<Network> networks_;
};

}  // namespace linnet::server
