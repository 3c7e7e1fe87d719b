#include "server/identity/peer_address.h"

#include "gtest/gtest.h"

namespace linnet::server {
namespace {

TEST(PeerAddressTest, ParsesGrpcPeers) {
  EXPECT_EQ(PeerAddress("ipv4:127.0.0.1:4711"), "127.0.0.1:4711");
  EXPECT_EQ(PeerAddress("ipv6:%5B::1%5D:4711"), "[::1]:4711");
  EXPECT_EQ(PeerAddress("ipv6:%5Bfe80::1%25eth0%5D:4711"), "[fe80::1%eth0]:4711");
}

TEST(NetworkOfTest, AddressesOfAnIpv6NetworkAreOneClient) {
  for (const char* peer :
       {"ipv6:%5B2001:db8:0:1::1%5D:4711", "ipv6:%5B2001:db8:0:1:ffff:ffff:ffff:ffff%5D:1",
        "[2001:db8:0:1::2]:80", "ipv6:%5B2001:DB8:0:1:0:0:0:3%5D:0"})
    EXPECT_EQ(NetworkName(peer), "ipv6:2001:db8:0:1::/64") << peer;
  EXPECT_EQ(NetworkName("ipv6:%5B2001:db8:0:2::1%5D:4711"), "ipv6:2001:db8:0:2::/64");
  EXPECT_EQ(NetworkName("ipv6:%5Bfd00:1:2:3:4::5%5D:1"), "ipv6:fd00:1:2:3::/64");
}

TEST(NetworkOfTest, Ipv4AddressesAreClientsOfTheirOwn) {
  EXPECT_EQ(NetworkName("ipv4:192.0.2.1:4711"), "ipv4:192.0.2.1");
  EXPECT_EQ(NetworkName("192.0.2.2:80"), "ipv4:192.0.2.2");
  EXPECT_EQ(NetworkName("ipv6:%5B::ffff:192.0.2.1%5D:1"), "ipv6:::ffff:192.0.2.1") << "mapped";
  EXPECT_EQ(NetworkName("ipv6:%5B64:ff9b::c000:201%5D:1"), "ipv6:64:ff9b::c000:201")
      << "translated";
}

TEST(NetworkOfTest, AddressesOfThisMachineOrLinkAreClientsOfTheirOwn) {
  EXPECT_EQ(NetworkName("ipv6:%5B::1%5D:4711"), "ipv6:::1");
  EXPECT_EQ(NetworkName("[fe80::1]:4711"), "ipv6:fe80::1");
  EXPECT_EQ(NetworkName("[febf::1]:4711"), "ipv6:febf::1") << "the last network of fe80::/10";
  EXPECT_EQ(NetworkName("[fec0::1]:4711"), "ipv6:fec0::/64");
  EXPECT_EQ(NetworkName("ipv6:%5Bfe80::1%25eth0%5D:4711"), "ipv6:%5Bfe80::1%25eth0%5D");
  EXPECT_EQ(NetworkName("unix:/run/socket"), "unix");
  EXPECT_EQ(NetworkName(""), "");
}

}  // namespace
}  // namespace linnet::server
