#include "server/identity/trusted_proxies.h"

#include <arpa/inet.h>

#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace linnet::server {
namespace {

struct Address {
  bool ipv6 = false;
  std::array<uint8_t, 16> bytes{};
};

std::optional<Address> ParseAddress(absl::string_view text) {
  Address address;
  const std::string terminated(text);
  if (inet_pton(AF_INET, terminated.c_str(), address.bytes.data()) == 1) return address;
  address.ipv6 = true;
  if (inet_pton(AF_INET6, terminated.c_str(), address.bytes.data()) == 1) return address;
  return std::nullopt;
}

// Returns the host of "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]" or
// "[2001:db8::1]:80".
absl::string_view HostOf(absl::string_view text) {
  if (absl::ConsumePrefix(&text, "[")) return text.substr(0, text.find(']'));
  const size_t colon = text.find(':');
  const bool has_port = colon != absl::string_view::npos && colon == text.rfind(':');
  return has_port ? text.substr(0, colon) : text;
}

bool SameBits(const std::array<uint8_t, 16>& a, const std::array<uint8_t, 16>& b, int bits) {
  for (int i = 0; i < bits; ++i) {
    const int mask = 0x80 >> (i % 8);
    if ((a[i / 8] & mask) != (b[i / 8] & mask)) return false;
  }
  return true;
}

}  // namespace

std::string PeerAddress(absl::string_view peer) {
  if (!absl::ConsumePrefix(&peer, "ipv4:")) absl::ConsumePrefix(&peer, "ipv6:");
  return absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
}

absl::StatusOr<TrustedProxies> TrustedProxies::Parse(absl::string_view list) {
  TrustedProxies proxies;
  for (absl::string_view entry : absl::StrSplit(list, absl::ByAnyChar(", "), absl::SkipEmpty())) {
    const std::vector<absl::string_view> parts = absl::StrSplit(entry, '/');
    const std::optional<Address> address = ParseAddress(parts[0]);
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
    proxies.networks_.push_back(
        {.ipv6 = address->ipv6, .prefix = prefix, .address = address->bytes});
  }
  return proxies;
}

bool TrustedProxies::Trusts(absl::string_view address) const {
  if (networks_.empty()) return false;
  const std::string decoded = PeerAddress(address);
  const std::optional<Address> parsed = ParseAddress(HostOf(decoded));
  if (!parsed.has_value()) return false;
  for (const Network& network : networks_) {
    if (network.ipv6 == parsed->ipv6 && SameBits(network.address, parsed->bytes, network.prefix))
      return true;
  }
  return false;
}

TrustedProxies::Client TrustedProxies::ClientOf(Headers headers, const Peer& connection) const {
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
  const absl::string_view host = HostOf(last);
  if (const std::optional<Address> address = ParseAddress(host); address.has_value()) {
    client.address =
        address->ipv6 ? absl::StrCat("ipv6:%5B", host, "%5D:0") : absl::StrCat("ipv4:", host, ":0");
  }
  return client;
}

}  // namespace linnet::server
