#include "server/port/connections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace linnet::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const MonotonicTime kStart{};

MonotonicTime In(absl::Duration time) { return After(kStart, time); }

std::string Peer(int port) { return absl::StrCat("10.0.0.1:", port); }
std::string GrpcPeer(int port) { return absl::StrCat("ipv4:", Peer(port)); }

TEST(ConnectionsTest, LimitsConnectionsInTotalAndPerAddress) {
  Connections connections({.connections = 3, .connections_per_address = 2});
  const auto first = connections.Admit("10.0.0.1:1", kStart);
  ASSERT_TRUE(first.has_value());
  EXPECT_TRUE(connections.Admit("10.0.0.1:2", kStart).has_value());
  EXPECT_FALSE(connections.Admit("10.0.0.1:3", kStart).has_value()) << "the third of this address";
  EXPECT_TRUE(connections.Admit("[::1]:1", kStart).has_value());
  EXPECT_FALSE(connections.Admit("[::1]:2", kStart).has_value()) << "the fourth of all";
  EXPECT_EQ(connections.refused(), 2);
  connections.Closed(*first);
  EXPECT_TRUE(connections.Admit("10.0.0.1:4", kStart).has_value());
}

TEST(ConnectionsTest, FirstConnectionOfANetworkHasRoomWhenOthersHoldAll) {
  for (const int limit : {3, 64, 640}) {
    Connections connections({.connections = limit});
    for (int i = 0; i < limit; ++i)
      ASSERT_TRUE(connections.Admit(absl::StrCat("10.0.0.1:", i), kStart).has_value());
    EXPECT_FALSE(connections.Admit("10.0.0.1:4711", kStart).has_value());
    const auto probe = connections.Admit("10.1.0.0:1", kStart);
    EXPECT_TRUE(probe.has_value());
    EXPECT_FALSE(connections.Admit("10.1.0.0:2", kStart).has_value()) << "its second one";
    int others = 1;
    while (connections.Admit(absl::StrCat("10.1.0.", others, ":1"), kStart).has_value()) ++others;
    EXPECT_EQ(others, std::max(1, limit / 64));
    connections.Closed(*probe);
    EXPECT_TRUE(connections.Admit("10.1.0.0:1", kStart).has_value());
  }
}

TEST(ConnectionsTest, NextUnknownGoesRound) {
  Connections connections({});
  EXPECT_EQ(connections.NextUnknown(0), 0);
  const auto first = connections.Admit(Peer(1), kStart);
  const auto second = connections.Admit(Peer(2), kStart);
  const auto third = connections.Admit(Peer(3), kStart);
  EXPECT_EQ(connections.NextUnknown(0), first);
  Connections::Call(connections, GrpcPeer(2), false).Received();
  ASSERT_TRUE(connections.known(*second));
  EXPECT_EQ(connections.NextUnknown(*first), third);
  EXPECT_EQ(connections.NextUnknown(*third), first);
  connections.Closed(*first);
  EXPECT_EQ(connections.NextUnknown(*first), third);
  EXPECT_EQ(connections.NextUnknown(*third), third);
}

TEST(ConnectionsTest, AnIpv6NetworkIsOneAddress) {
  Connections connections({.connections_per_address = 2});
  EXPECT_TRUE(connections.Admit("[2001:db8::1]:1", kStart).has_value());
  const auto second = connections.Admit("[2001:db8::2]:1", kStart);
  EXPECT_FALSE(connections.Admit("[2001:db8::3]:1", kStart).has_value());
  EXPECT_TRUE(connections.Admit("[2001:db8:0:1::1]:1", kStart).has_value()) << "another network";
  connections.Closed(*second);
  EXPECT_TRUE(connections.Admit("[2001:db8::3]:1", kStart).has_value());
}

TEST(ConnectionsTest, ExpelsUnknownAfterTimeout) {
  Connections connections({.timeout = absl::Seconds(10)});
  const auto silent = connections.Admit(Peer(1), kStart);
  const auto talks = connections.Admit(Peer(2), kStart);
  const auto later = connections.Admit(Peer(3), In(absl::Seconds(5)));
  {
    Connections::Call call(connections, GrpcPeer(2), true);
    call.Received();
  }
  EXPECT_THAT(connections.Excess(In(absl::Seconds(9))), IsEmpty());
  EXPECT_THAT(connections.Excess(In(absl::Seconds(10))), ElementsAre(*silent));
  EXPECT_THAT(connections.Excess(In(absl::Hours(1))), ElementsAre(*later)) << "each once";
  EXPECT_TRUE(connections.known(*talks));
  EXPECT_EQ(connections.expelled(), 2);
}

TEST(ConnectionsTest, RequestMakesConnectionKnownWithoutTokens) {
  Connections connections({.timeout = absl::Seconds(10)});
  const auto id = connections.Admit(Peer(1), kStart);
  Connections::Call call(connections, GrpcPeer(1), true);
  EXPECT_FALSE(connections.known(*id));
  call.Received();
  EXPECT_TRUE(connections.known(*id));
}

TEST(ConnectionsTest, AuthenticatedCallMakesConnectionKnown) {
  Connections connections({.timeout = absl::Seconds(10), .tokens = true});
  const auto id = connections.Admit(Peer(1), kStart);
  {
    Connections::Call health(connections, GrpcPeer(1), /*authenticated=*/false);
    health.Received();
  }
  EXPECT_FALSE(connections.known(*id));
  Connections::Call call(connections, GrpcPeer(1), /*authenticated=*/true);
  EXPECT_TRUE(connections.known(*id)) << "before its request has come";
}

TEST(ConnectionsTest, ExpelsLargestWhenTotalIsTooMuch) {
  Connections connections({.bytes = 1000});
  const auto small = connections.Admit(Peer(1), kStart);
  const auto large = connections.Admit(Peer(2), kStart);
  const auto larger = connections.Admit(Peer(3), kStart);
  connections.Received(*small, 100);
  connections.Received(*large, 700);
  connections.Received(*larger, 900);
  EXPECT_THAT(connections.Excess(kStart), ElementsAre(*larger));
  connections.Received(*larger, 5000);  // no longer counted
  EXPECT_THAT(connections.Excess(kStart), IsEmpty());
  connections.Closed(*larger);
  connections.Received(*small, 400);
  EXPECT_THAT(connections.Excess(kStart), ElementsAre(*large));
}

TEST(ConnectionsTest, ExpelsAllSendersWhileMemoryIsNotReleased) {
  Connections connections({.bytes = 1000});
  const auto silent = connections.Admit(Peer(1), kStart);
  const auto small = connections.Admit(Peer(2), kStart);
  const auto large = connections.Admit(Peer(3), kStart);
  const auto larger = connections.Admit(Peer(4), kStart);
  connections.Received(*small, 1);
  connections.Received(*larger, 1800);
  EXPECT_THAT(connections.Excess(kStart), ElementsAre(*larger));
  connections.Received(*large, 200);
  EXPECT_THAT(connections.Excess(kStart), ElementsAre(*large, *small));
  EXPECT_THAT(connections.Excess(kStart), IsEmpty())
      << "connections that have sent nothing may stay";
  connections.Closed(*larger);
  connections.Received(*silent, 900);
  EXPECT_THAT(connections.Excess(kStart), IsEmpty()) << "there is room again";
}

TEST(ConnectionsTest, CountsCallsWithoutRequest) {
  Connections connections({.bytes_per = 3 * Connections::kCallBytes});
  const auto id = connections.Admit(Peer(1), kStart);
  std::vector<std::unique_ptr<Connections::Call>> calls;
  for (int i = 0; i < 3; ++i)
    calls.push_back(std::make_unique<Connections::Call>(connections, GrpcPeer(1), true));
  EXPECT_THAT(connections.Excess(kStart), IsEmpty());
  calls.push_back(std::make_unique<Connections::Call>(connections, GrpcPeer(1), true));
  EXPECT_THAT(connections.Excess(kStart), ElementsAre(*id));
}

TEST(ConnectionsTest, ExpelsConnectionWithTooManyCalls) {
  Connections connections({.calls_per = 5});
  const auto id = connections.Admit(Peer(1), kStart);
  for (int i = 0; i < 5; ++i) Connections::Call(connections, GrpcPeer(1), true);
  EXPECT_THAT(connections.Excess(kStart), IsEmpty());
  Connections::Call(connections, GrpcPeer(1), true);
  EXPECT_THAT(connections.Excess(kStart), ElementsAre(*id));
}

TEST(ConnectionsTest, KeepsItsLimitsUnderRandomEvents) {
  constexpr int64_t kBytes = 50'000;
  Connections connections({.connections = 20,
                           .timeout = absl::Seconds(30),
                           .bytes = kBytes,
                           .bytes_per = 20'000,
                           .calls_per = 10});
  std::mt19937 random(7);
  const auto below = [&random](int n) { return static_cast<int>(random() % n); };
  struct Open {
    int port;
    MonotonicTime accepted;
    int64_t received = 0;
    bool known = false;
  };
  std::map<Connections::Id, Open> open;  // not returned by Excess yet
  std::map<Connections::Id, int64_t> closing;
  std::vector<Connections::Id> all;
  for (int step = 0; step < 20'000; ++step) {
    const MonotonicTime now = In(absl::Milliseconds(10) * step);
    if (below(4) == 0) {
      if (const auto id = connections.Admit(Peer(step), now); id.has_value()) {
        open[*id] = {.port = step, .accepted = now};
        all.push_back(*id);
      }
    }
    if (!open.empty()) {
      const auto it = std::next(open.begin(), below(open.size()));
      auto& [id, connection] = *it;
      connection.received += below(3'000);
      connections.Received(id, connection.received);
      if (below(10) == 0) {
        Connections::Call call(connections, GrpcPeer(connection.port), true);
        if (below(2) == 0) {
          call.Received();
          connection.known = true;
        }
      }
    }
    for (Connections::Id id : connections.Excess(now)) {
      ASSERT_EQ(open.count(id), 1) << "each once";
      EXPECT_FALSE(open[id].known);
      closing[id] = open[id].received;
      open.erase(id);
    }
    if (!all.empty() && below(6) == 0) {
      const size_t which = below(all.size());
      connections.Closed(all[which]);
      open.erase(all[which]);
      closing.erase(all[which]);
      all.erase(all.begin() + which);
    }
    ASSERT_LE(connections.open(), 20);
    ASSERT_EQ(connections.open(), std::ssize(all));
    int64_t held = 0;
    int64_t in_all = 0;
    for (const auto& [id, bytes] : closing) in_all += bytes;
    for (const auto& [id, connection] : open) {
      if (connection.known) continue;
      ASSERT_LT(Elapsed(connection.accepted, now), absl::Seconds(30));
      ASSERT_LE(connection.received, 20'000);
      held += connection.received;
    }
    ASSERT_LE(held, kBytes);
    ASSERT_TRUE(held == 0 || held + in_all <= 2 * kBytes);
  }
  EXPECT_GT(connections.refused(), 0);
  EXPECT_GT(connections.expelled(), 0);
}

}  // namespace
}  // namespace linnet::server
