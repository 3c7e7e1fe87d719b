#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace linnet::server {

struct IpAddress {
  bool ipv6 = false;
  std::array<uint8_t, 16> bytes{};  // an IPv4 address is in the first four
};

// Parses "192.0.2.1" or "2001:db8::1"; nullopt for anything else, also for an address with a zone.
std::optional<IpAddress> ParseIpAddress(absl::string_view text);

// Returns the host of "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]" or
// "[2001:db8::1]:80".
absl::string_view HostPart(absl::string_view text);

// Converts gRPC's "ipv4:127.0.0.1:4711" to "127.0.0.1:4711" and "ipv6:%5Bfe80::1%25eth0%5D:4711" to
// "[fe80::1%eth0]:4711". Other peers are returned unchanged.
std::string PeerAddress(absl::string_view peer);

// The IP address of a peer, which is gRPC's or HOST:PORT; nullopt for one that has none.
std::optional<IpAddress> PeerIpAddress(absl::string_view peer);

// The address of a peer without its port: "ipv6:%5B2001:db8::1%5D".
absl::string_view WithoutPort(absl::string_view address);

// The network that has the shares and limits of one client: the address itself for IPv4,
// "ipv4:192.0.2.1", and the first 64 bits for IPv6, "ipv6:2001:db8::/64", since a host takes as
// many addresses of its network as it wants (RFC 8981). Addresses of this machine or link and those
// that contain an IPv4 address (RFC 4291 section 2.5, RFC 6052) have no such network and stand for
// themselves, as do peers without an address. `peer` is as in PeerIpAddress.
std::string NetworkName(absl::string_view peer);

}  // namespace linnet::server
