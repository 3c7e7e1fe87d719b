#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/identity/authentication.h"
#include "server/identity/peer_address.h"

namespace linnet::server {

// The addresses and networks of proxies whose headers about their clients are trusted. Immutable.
class TrustedProxies {
 public:
  // Headers that a trusted proxy sets; it must remove them if its client sent them.
  static constexpr char kForwardedFor[] = "x-forwarded-for";
  static constexpr char kCertificateSubject[] = "x-client-certificate-subject";

  // Parses "10.1.2.3, 192.0.2.0/24, 2001:db8::/32"; "" trusts no proxy. INVALID_ARGUMENT otherwise.
  static absl::StatusOr<TrustedProxies> Parse(absl::string_view list);

  // `address` as gRPC writes it: "ipv4:127.0.0.1:4711", "ipv6:%5B::1%5D:4711".
  bool Trusts(absl::string_view address) const;

  // Identifies the client of a call on a connection. Behind a trusted proxy it is the last address
  // of x-forwarded-for, which the proxy added (those before it come from its client), with the
  // subject of a certificate that the proxy has verified; the certificate of the proxy itself
  // identifies no caller. Without a trusted proxy these headers are ignored.
  struct Client {
    std::string address;  // as gRPC writes it
    std::string certificate_subject;
  };
  Client FindClient(Headers headers, const Peer& connection) const;

 private:
  struct Network {
    IpAddress address;
    int prefix;  // number of leading bits that are compared
  };
  std::vector<Network> networks_;
};

}  // namespace linnet::server
