#include "server/identity/trusted_proxies.h"

#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/identity/peer_address.h"

namespace linnet::server {
namespace {

bool SameBits(const std::array<uint8_t, 16>& a, const std::array<uint8_t, 16>& b, int bits) {
  for (int i = 0; i < bits; ++i) {
    const int mask = 0x80 >> (i % 8);
    if ((a[i / 8] & mask) != (b[i / 8] & mask)) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<TrustedProxies> TrustedProxies::Parse(absl::string_view list) {
  TrustedProxies proxies;
  for (absl::string_view entry : absl::StrSplit(list, absl::ByAnyChar(", "), absl::SkipEmpty())) {
    const std::vector<absl::string_view> parts = absl::StrSplit(entry, '/');
    const std::optional<IpAddress> address = ParseIpAddress(parts[0]);
    int prefix = address.has_value() && address->ipv6 ? 128 : 32;
    const int max_prefix = prefix;
    if (!address.has_value() || parts.size() > 2 ||
        (parts.size() == 2 &&
         (!absl::SimpleAtoi(parts[1], &prefix) || prefix < 0 || prefix > max_prefix))) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", entry,
                       "\" is neither an address nor a network such as 192.0.2.0/24 "
                       "or 2001:db8::/32; separate several with commas"));
    }
    proxies.networks_.push_back({.address = *address, .prefix = prefix});
  }
  return proxies;
}

bool TrustedProxies::Trusts(absl::string_view address) const {
  if (networks_.empty()) return false;
  const std::optional<IpAddress> parsed = PeerIpAddress(address);
  if (!parsed.has_value()) return false;
  for (const Network& network : networks_) {
    if (network.address.ipv6 == parsed->ipv6 &&
        SameBits(network.address.bytes, parsed->bytes, network.prefix))
      return true;
  }
  return false;
}

TrustedProxies::Client TrustedProxies::FindClient(Headers headers, const Peer& connection) const {
  Client client{.address = std::string(connection.address),
                .certificate_subject = std::string(connection.certificate_subject)};
  if (!Trusts(connection.address)) return client;
  // If there are two values, neither is trusted: a proxy that sets the header leaves exactly one.
  const auto subjects = headers(kCertificateSubject);
  client.certificate_subject = subjects.size() == 1 ? std::string(subjects.front()) : "";
  const auto forwarded = headers(kForwardedFor);
  if (forwarded.empty()) return client;
  absl::string_view last = forwarded.back();
  last = absl::StripAsciiWhitespace(last.substr(last.rfind(',') + 1));
  const absl::string_view host = HostPart(last);
  if (const std::optional<IpAddress> address = ParseIpAddress(host); address.has_value()) {
    client.address =
        address->ipv6 ? absl::StrCat("ipv6:%5B", host, "%5D:0") : absl::StrCat("ipv4:", host, ":0");
  }
  return client;
}

}  // namespace linnet::server
