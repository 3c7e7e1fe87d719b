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

TEST(QuotaTest, SingleClientHoldsThreeQuarters) {
  Quota quota(1200);
  EXPECT_EQ(Fill(quota, "a"), 900);
  EXPECT_EQ(quota.Check(Who("a"), 1), Decision::kShareUsed);
  EXPECT_EQ(Fill(quota, "b"), 300);
  EXPECT_EQ(quota.Check(Who("c"), 1), Decision::kFull);
}

TEST(QuotaTest, IdsDivideTheShareOfTheirClient) {
  Quota quota(1600);
  EXPECT_EQ(Fill(quota, "a", "x"), 900) << "three quarters of three quarters";
  EXPECT_EQ(Fill(quota, "a", "y"), 300) << "what is left of the client's 1200";
  EXPECT_EQ(quota.Check(Who("a", "z"), 1), Decision::kShareUsed)
      << "nothing is left for a third id";
  quota.GiveBack(Who("a", "x"), 600);
  EXPECT_EQ(Fill(quota, "a", "y"), 1200 * 3 / 7 - 300) << "two share equally";
  EXPECT_EQ(Fill(quota, "b"), 1600 * 3 / 7) << "another client has a share of its own";
}

TEST(QuotaTest, EmptyIdCountsAsACallerBesideOthers) {
  Quota quota(1600);
  quota.Take(Who("a"), 1);
  EXPECT_EQ(quota.share(Who("a")), 1200);
  quota.Take(Who("a", "x"), 1);
  EXPECT_EQ(quota.share(Who("a")), 1200 * 3 / 7);
  EXPECT_EQ(quota.share(Who("a", "x")), 1200 * 3 / 7);
}

// A client gets no more with any number of ids than without ids.
TEST(QuotaTest, MoreIdsDoNotIncreaseAClientsQuota) {
  for (const int ids : {1, 2, 10, 1000}) {
    Quota quota(12'000);
    quota.Take(Who("honest"), 1);
    int64_t held = 0;
    for (int i = 0; i < ids; ++i) held += Fill(quota, "sybil", absl::StrCat(i));
    EXPECT_LE(held, 12'000 * 3 / 7) << ids << " ids";
    EXPECT_GE(held, 12'000 * 3 / 7 * 3 / 4) << ids << " ids";
    EXPECT_EQ(quota.share(Who("honest")), 12'000 * 3 / 7) << ids << " ids";
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
  EXPECT_EQ(quota.share(Who("a")), 900'000);
  EXPECT_EQ(Fill(quota, "a"), 900'000);
  EXPECT_EQ(quota.share(Who("b")), 1'200'000 * 3 / 7);
}

TEST(QuotaTest, HealthCallsTogetherHoldAnEighthOfMax) {
  for (const int networks : {1, 2, 10, 1000}) {
    Quota quota(120'000);
    int64_t held = 0;
    for (int i = 0; i < networks; ++i) held += Fill(quota, kHealthClient, absl::StrCat(i));
    EXPECT_LE(held, 15'000) << networks << " networks";
    EXPECT_GE(held, 15'000 * 3 / 4) << networks << " networks";
    EXPECT_EQ(quota.Check(Who("a"), 105'000), Decision::kFits);
  }
}

TEST(QuotaTest, HealthCallsLeaveRoomForAnotherNetwork) {
  Quota quota(800);
  EXPECT_EQ(Fill(quota, kHealthClient, "x"), 75);
  EXPECT_EQ(quota.Check(Who(kHealthClient, "y"), 25), Decision::kFits);
  EXPECT_EQ(quota.Check(Who(kHealthClient, "y"), 26), Decision::kShareUsed);
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
        // Only a caller that held nothing may exceed its share, and a client only with its first.
        if (own > 0) {
          EXPECT_LE(own + amount, quota.share(Who(client, id)));
        }
        quota.Take(Who(client, id), amount);
        own += amount;
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
