#include "server/identity/trusted_proxies.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

using ::testing::HasSubstr;
using Sent = std::vector<std::pair<std::string, std::string>>;

constexpr char kProxy[] = "ipv4:192.0.2.1:4711";
constexpr char kForwarded[] = "x-forwarded-for";
constexpr char kSubject[] = "x-client-certificate-subject";

TrustedProxies::Client FindClient(const std::string& trusted, const Sent& sent,
                                  const std::string& address = kProxy,
                                  const std::string& subject = "") {
  const auto headers = [&sent](absl::string_view name) {
    std::vector<absl::string_view> values;
    for (const auto& [key, value] : sent) {
      if (key == name) values.push_back(value);
    }
    return values;
  };
  return TrustedProxies::Parse(trusted)->FindClient(
      headers, {.address = address, .certificate_subject = subject});
}

TEST(TrustedProxiesTest, TrustsListedAddressesAndNetworks) {
  const TrustedProxies proxies =
      *TrustedProxies::Parse("192.0.2.1, 10.0.0.0/8,2001:db8::/33 198.51.100.7/31");
  for (const char* address : {"ipv4:192.0.2.1:1", "ipv4:10.255.0.9:65535",
                              "ipv6:%5B2001:db8:7fff::1%5D:1", "ipv4:198.51.100.6:1"})
    EXPECT_TRUE(proxies.Trusts(address)) << address;
  for (const char* address :
       {"ipv4:192.0.2.2:1", "ipv4:11.0.0.1:1", "ipv6:%5B2001:db8:8000::1%5D:1",
        "ipv6:%5B::ffff%5D:1", "ipv4:198.51.100.8:1", "unix:/socket", ""})
    EXPECT_FALSE(proxies.Trusts(address)) << address;
  EXPECT_TRUE(TrustedProxies::Parse("0.0.0.0/0")->Trusts("ipv4:203.0.113.9:1"));
  EXPECT_FALSE(TrustedProxies::Parse("0.0.0.0/0")->Trusts("ipv6:%5B::1%5D:1"));
  EXPECT_FALSE(TrustedProxies::Parse("")->Trusts("ipv4:127.0.0.1:1"));
}

TEST(TrustedProxiesTest, RefusesInvalidAddresses) {
  for (const char* list : {"proxy.example", "192.0.2.0/33", "192.0.2.0/-1", "2001:db8::/129",
                           "192.0.2.0/24/1", "192.0.2.1, x", "192.0.2.0/"})
    EXPECT_THAT(TrustedProxies::Parse(list).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("192.0.2.0/24")))
        << list;
}

TEST(TrustedProxiesTest, UsesLastForwardedAddress) {
  EXPECT_EQ(FindClient("192.0.2.1", {{kForwarded, "203.0.113.5"}}).address, "ipv4:203.0.113.5:0");
  EXPECT_EQ(FindClient("192.0.2.1", {{kForwarded, "1.1.1.1, 203.0.113.5"}}).address,
            "ipv4:203.0.113.5:0")
      << "what stands before it was said by the client";
  EXPECT_EQ(FindClient("192.0.2.1", {{kForwarded, "1.1.1.1"}, {kForwarded, "203.0.113.5"}}).address,
            "ipv4:203.0.113.5:0");
  EXPECT_EQ(FindClient("192.0.2.1", {{kForwarded, "203.0.113.5:4711"}}).address,
            "ipv4:203.0.113.5:0");
  for (const char* value : {"2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:4711"})
    EXPECT_EQ(FindClient("192.0.2.1", {{kForwarded, value}}).address, "ipv6:%5B2001:db8::1%5D:0");
}

TEST(TrustedProxiesTest, UsesProxyWithoutForwardedAddress) {
  EXPECT_EQ(FindClient("192.0.2.1", {}).address, kProxy);
  for (const char* value : {"", "unknown", "203.0.113.5,", "203.0.113", "[proxy]:1"})
    EXPECT_EQ(FindClient("192.0.2.1", {{kForwarded, value}}).address, kProxy) << value;
}

TEST(TrustedProxiesTest, IgnoresHeadersOfUntrustedPeers) {
  const Sent forged = {{kForwarded, "203.0.113.5"}, {kSubject, "alice"}};
  for (const char* trusted : {"", "192.0.2.2"}) {
    const auto client = FindClient(trusted, forged, kProxy, "bob");
    EXPECT_EQ(client.address, kProxy);
    EXPECT_EQ(client.certificate_subject, "bob");
  }
}

TEST(TrustedProxiesTest, UsesSubjectOfHeaderNotOfProxy) {
  EXPECT_EQ(FindClient("192.0.2.1", {{kSubject, "alice"}}, kProxy, "proxy").certificate_subject,
            "alice");
  EXPECT_EQ(FindClient("192.0.2.1", {}, kProxy, "proxy").certificate_subject, "");
  EXPECT_EQ(FindClient("192.0.2.1", {{kSubject, "alice"}, {kSubject, "bob"}}).certificate_subject,
            "")
      << "two are not chosen from";
}

}  // namespace
}  // namespace linnet::server
