#include "server/admission/quota.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace linnet::server {
namespace {

using Decision = Quota::Decision;

Caller Who(const std::string& client, const std::string& id = "") {
  return {.client = client, .id = id};
}

// Takes amounts of 1 as long as they fit; returns their number.
int64_t Fill(Quota& quota, const std::string& client, const std::string& id = "") {
  const Caller caller = Who(client, id);
  int64_t taken = 0;
  while (quota.Check(caller, 1) == Decision::kFits) {
    quota.Take(caller, 1);
    ++taken;
  }
  return taken;
}

TEST(QuotaTest, EachClientLeavesAQuarterOfWhatItFindsFree) {
  Quota quota(1024);
  EXPECT_EQ(Fill(quota, "a"), 768);
  EXPECT_EQ(quota.Check(Who("a"), 1), Decision::kShareUsed);
  EXPECT_EQ(Fill(quota, "b"), 192);
  EXPECT_EQ(Fill(quota, "c"), 48);
  EXPECT_EQ(quota.Check(Who("d"), 13), Decision::kFull);
  EXPECT_EQ(quota.Check(Who("d"), 12), Decision::kFits);
}

TEST(QuotaTest, ClientsThatTakeWhatTheyCanEndWithEqualParts) {
  for (const int clients : {2, 3, 10}) {
    Quota quota(1'000'000);
    for (int round = 0; round < 200; ++round) {
      for (int i = 0; i < clients; ++i) {  // of ten parts one ends in each round
        const Caller client = Who(absl::StrCat(i));
        quota.GiveBack(client, quota.held_by(client) / 10);
        quota.Take(client, quota.share(client) - quota.held_by(client));
      }
    }
    for (int i = 0; i < clients; ++i)
      EXPECT_NEAR(quota.held_by(Who(absl::StrCat(i))), 1'000'000 / (clients + 1.0 / 3), 3'000);
  }
}

TEST(QuotaTest, IdsDivideTheShareOfTheirClient) {
  Quota quota(1600);
  EXPECT_EQ(Fill(quota, "a", "x"), 900) << "three quarters of three quarters";
  EXPECT_EQ(Fill(quota, "a", "y"), 225) << "three quarters of what is left of the client's 1200";
  EXPECT_EQ(quota.Check(Who("a", "y"), 1), Decision::kShareUsed);
  quota.GiveBack(Who("a", "x"), 600);
  EXPECT_EQ(Fill(quota, "a", "y"), 450) << "in all three quarters of the 900 that x leaves";
  EXPECT_EQ(Fill(quota, "b"), (1600 - 975) * 3 / 4) << "another client has a share of its own";
}

TEST(QuotaTest, EmptyIdCountsAsACallerBesideOthers) {
  Quota quota(1600);
  quota.Take(Who("a"), 300);
  EXPECT_EQ(quota.share(Who("a")), 1200);
  quota.Take(Who("a", "x"), 300);
  EXPECT_EQ(quota.share(Who("a")), 675) << "three quarters of the 900 that are not x's";
  EXPECT_EQ(quota.share(Who("a", "x")), 675);
}

// A client gets no more with any number of ids than without ids.
TEST(QuotaTest, MoreIdsDoNotIncreaseAClientsQuota) {
  for (const int ids : {1, 2, 10, 1000}) {
    Quota quota(12'000);
    int64_t held = 0;
    for (int i = 0; i < ids; ++i) held += Fill(quota, "sybil", absl::StrCat(i));
    EXPECT_LE(held, 9'000) << ids << " ids";
    EXPECT_GE(held, 9'000 * 3 / 4) << ids << " ids";
    EXPECT_GE(quota.share(Who("honest")), 3'000 * 3 / 4) << ids << " ids";
  }
}

// Health calls need no token: with any number of networks they take nothing from a client's share.
TEST(QuotaTest, HealthCallsDoNotReduceTheSharesOfClients) {
  Quota quota(1'200'000);
  for (int i = 0; i < 200; ++i) {
    const Caller network = Who(kHealthClient, absl::StrCat(i));
    ASSERT_EQ(quota.Check(network, 16), Decision::kFits);
    quota.Take(network, 16);
  }
  EXPECT_EQ(Fill(quota, "a"), (1'200'000 - 3'200) * 3 / 4);
}

TEST(QuotaTest, HealthCallsTogetherHoldAnEighthOfMax) {
  for (const int networks : {1, 2, 10, 1000}) {
    Quota quota(120'000);
    int64_t held = 0;
    for (int i = 0; i < networks; ++i) held += Fill(quota, kHealthClient, absl::StrCat(i));
    EXPECT_LE(held, 15'000 + networks) << networks << " networks, each with a first call";
    EXPECT_GE(held, 15'000 * 3 / 4) << networks << " networks";
    EXPECT_EQ(quota.Check(Who("a"), 104'000 * 3 / 4), Decision::kFits);
  }
}

TEST(QuotaTest, FirstHealthCallsOfNetworksTogetherHoldAQuarterOfMax) {
  Quota quota(8'000);
  int networks = 0;
  while (quota.Check(Who(kHealthClient, absl::StrCat(networks)), 90) == Decision::kFits)
    quota.Take(Who(kHealthClient, absl::StrCat(networks++)), 90);
  EXPECT_EQ(networks, 2'000 / 90);
}

TEST(QuotaTest, FirstHealthCallOfANetworkFitsBesideAnyOthers) {
  Quota quota(800);
  EXPECT_EQ(Fill(quota, kHealthClient, "x"), 75);
  for (const char* client : {"a", "b", "c", "d", "e", "f"}) Fill(quota, client);
  EXPECT_EQ(quota.Check(Who("g"), 1), Decision::kFull);
  const Caller probe = Who(kHealthClient, "y");
  EXPECT_EQ(quota.Check(probe, 26), Decision::kFits);
  quota.Take(probe, 26);
  EXPECT_GT(quota.held(), 800);
  EXPECT_NE(quota.Check(probe, 1), Decision::kFits) << "the second";
  EXPECT_EQ(quota.Check(Who("g"), 1), Decision::kFull);
  EXPECT_EQ(quota.share(Who("g")), 0);
}

TEST(QuotaTest, NewClientFindsRoomBesideThoseThatTakeWhatTheyCanAtOnce) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    Quota quota(10'000);
    const int clients = 1 + static_cast<int>(random() % 8);
    for (int i = 0; i < 5000; ++i) {  // each takes all that fits, in pieces
      const std::string client(1, static_cast<char>('a' + random() % clients));
      const int64_t piece = 1 + random() % 20;
      if (quota.Check({.client = client}, piece) == Decision::kFits)
        quota.Take({.client = client}, piece);
    }
    const int64_t free = 10'000 / (3 * clients + 1);  // if all hold the same
    EXPECT_EQ(quota.Check({.client = "new"}, free / 2), Decision::kFits) << "seed " << seed;
  }
}

TEST(QuotaTest, GivenBackAmountIsFreeAndEmptyClientsAreErased) {
  Quota quota(100);
  quota.Take({.client = "a"}, 60);
  quota.Take({.client = "b"}, 10);
  quota.GiveBack({.client = "a"}, 60);
  EXPECT_EQ(quota.held(), 10);
  EXPECT_EQ(quota.held_by({.client = "a"}), 0);
  EXPECT_EQ(quota.share({.client = "b"}), 75);
}

TEST(QuotaTest, KeepsSumsAndSharesUnderRandomRequests) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    Quota quota(1000);
    std::map<std::pair<std::string, std::string>, int64_t> held;
    for (int step = 0; step < 3000; ++step) {
      const std::string client(1, static_cast<char>('a' + random() % 3));
      const std::string id(random() % 3, 'x');
      int64_t& own = held[{client, id}];
      const auto amount = static_cast<int64_t>(random() % 60);
      if (random() % 2 == 0) {
        const int64_t back = std::min(amount, own);
        quota.GiveBack(Who(client, id), back);
        own -= back;
      } else if (quota.Check(Who(client, id), amount) == Decision::kFits) {
        quota.Take(Who(client, id), amount);
        own += amount;
        int64_t of_client = 0;
        for (const auto& [who, amount_held] : held)
          of_client += who.first == client ? amount_held : 0;
        EXPECT_TRUE(amount == 0 || of_client <= 3 * (1000 - quota.held())) << of_client;
      }
      int64_t sum = 0;
      for (const auto& [who, amount_held] : held) {
        EXPECT_EQ(quota.held_by(Who(who.first, who.second)), amount_held);
        sum += amount_held;
      }
      EXPECT_EQ(quota.held(), sum);
      EXPECT_LE(sum, 1000);
    }
  }
}

}  // namespace
}  // namespace linnet::server
