#include "server/identity/peer_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace linnet::server {
namespace {

constexpr size_t kNetworkBytes = 8;  // of an IPv6 address

// Returns true if `address` begins with the bytes of `prefix`.
bool BeginsWith(const IpAddress& address, std::initializer_list<uint8_t> prefix) {
  return std::equal(prefix.begin(), prefix.end(), address.bytes.begin());
}

// Returns true if the first 64 bits of an IPv6 address are a network, in which a host takes any
// number of addresses.
bool HasNetwork(const IpAddress& address) {
  const bool unspecified_loopback_or_mapped = BeginsWith(address, {0, 0, 0, 0, 0, 0, 0, 0});
  const bool translated = BeginsWith(address, {0, 0x64, 0xff, 0x9b});           // 64:ff9b::/32
  const bool link = BeginsWith(address, {0xfe}) && address.bytes[1] >> 6 == 2;  // fe80::/10
  return !unspecified_loopback_or_mapped && !translated && !link;
}

std::string AddressText(const IpAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(address.ipv6 ? AF_INET6 : AF_INET, address.bytes.data(), text.data(), text.size());
  return text.data();
}

}  // namespace

std::optional<IpAddress> ParseIpAddress(absl::string_view text) {
  IpAddress address;
  const std::string terminated(text);
  if (inet_pton(AF_INET, terminated.c_str(), address.bytes.data()) == 1) return address;
  address.ipv6 = true;
  if (inet_pton(AF_INET6, terminated.c_str(), address.bytes.data()) == 1) return address;
  return std::nullopt;
}

absl::string_view HostPart(absl::string_view text) {
  if (absl::ConsumePrefix(&text, "[")) return text.substr(0, text.find(']'));
  const size_t colon = text.find(':');
  const bool has_port = colon != absl::string_view::npos && colon == text.rfind(':');
  return has_port ? text.substr(0, colon) : text;
}

std::string PeerAddress(absl::string_view peer) {
  if (!absl::ConsumePrefix(&peer, "ipv4:")) absl::ConsumePrefix(&peer, "ipv6:");
  return absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
}

std::optional<IpAddress> PeerIpAddress(absl::string_view peer) {
  const std::string decoded = PeerAddress(peer);
  return ParseIpAddress(HostPart(decoded));
}

absl::string_view WithoutPort(absl::string_view address) {
  return address.substr(0, address.rfind(':'));
}

std::string NetworkName(absl::string_view peer) {
  std::optional<IpAddress> address = PeerIpAddress(peer);
  if (!address.has_value()) return std::string(WithoutPort(peer));
  if (!address->ipv6) return absl::StrCat("ipv4:", AddressText(*address));
  if (!HasNetwork(*address)) return absl::StrCat("ipv6:", AddressText(*address));
  std::fill(address->bytes.begin() + kNetworkBytes, address->bytes.end(), uint8_t{0});
  return absl::StrCat("ipv6:", AddressText(*address), "/64");
}

}  // namespace linnet::server
