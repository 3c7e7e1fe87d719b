#include "server/schedule/encode_policy.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "gmock/gmock.h"

namespace linnet::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

EncodeOptions RandomOptions(std::mt19937& random) {
  return {.max_wait_steps = static_cast<int>(random() % 8),
          .encode_call_steps = static_cast<float>(random() % 100) / 20,
          .encode_call_tokens = static_cast<int>(random() % 60)};
}

TEST(EncodePolicyTest, NeverDelaysBeyondMaxWaitSteps) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const EncodeOptions options = RandomOptions(random);
    EncodePolicy policy(options);
    int eligible = 0, oldest = 0;  // steps that the first of them has waited
    for (int step = 0; step < 200; ++step) {
      eligible += random() % 3 == 0 ? random() % 4 : 0;
      if (policy.EncodeNow(eligible, random() % 50, /*encoding=*/false)) {
        ASSERT_GT(eligible, 0);
        eligible = oldest = 0;
      } else if (eligible > 0) {
        ASSERT_LE(++oldest, options.max_wait_steps);
      }
    }
  }
}

TEST(EncodePolicyTest, AdmitsAtOnceOnAnIdleEngine) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    EncodePolicy policy(RandomOptions(random));
    for (int step = random() % 5; step > 0; --step)
      policy.EncodeNow(random() % 3, 40, /*encoding=*/false);
    EXPECT_TRUE(policy.EncodeNow(1 + random() % 9, 0, /*encoding=*/false));
    EXPECT_FALSE(policy.EncodeNow(0, 0, /*encoding=*/false)) << "nothing is eligible";
  }
}

TEST(EncodePolicyTest, DelayNeverCostsMoreThanTheEncoderCall) {
  // With a constant number of running sequences, so that the cost of a call is constant. The delay
  // ends before the step that would exceed it.
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    const EncodeOptions options = RandomOptions(random);
    EncodePolicy policy(options);
    const int running = 1 + random() % 60;
    int eligible = 0, waited = 0;
    for (int step = 0; step < 200; ++step) {
      eligible += random() % 2 == 0 ? random() % 3 : 0;
      if (policy.EncodeNow(eligible, running, /*encoding=*/false)) {
        eligible = waited = 0;
      } else {
        waited += eligible;
        ASSERT_LT(waited, std::max(1e-9, running * double{options.encode_call_steps} + 1e-3));
      }
    }
  }
}

TEST(EncodePolicyTest, AdmitsAtOnceIfCallsAreFreeOrTheBoundIsZero) {
  EncodePolicy free({.encode_call_steps = 0});
  EXPECT_TRUE(free.EncodeNow(1, 30, /*encoding=*/false));
  EncodePolicy at_once({.max_wait_steps = 0, .encode_call_steps = 100});
  EXPECT_TRUE(at_once.EncodeNow(1, 30, /*encoding=*/false));
}

TEST(EncodePolicyTest, WaitsForTheEndOfTheLastCallWhileOthersRun) {
  EncodePolicy policy({.max_wait_steps = 2, .encode_call_steps = 0});
  for (int step = 0; step < 20; ++step) EXPECT_FALSE(policy.EncodeNow(3, 5, /*encoding=*/true));
  EXPECT_TRUE(policy.EncodeNow(3, 5, /*encoding=*/false));
  EXPECT_TRUE(policy.EncodeNow(3, 0, /*encoding=*/true)) << "nothing runs meanwhile";

  EncodePolicy delays({.max_wait_steps = 2, .encode_call_steps = 100});
  for (int step = 0; step < 3; ++step) EXPECT_FALSE(delays.EncodeNow(1, 5, /*encoding=*/true));
  EXPECT_TRUE(delays.EncodeNow(1, 5, /*encoding=*/false)) << "it has waited long enough";
}

TEST(EncodePolicyTest, DelayShrinksWithAdmissibleAndGrowsWithRunning) {
  const auto steps = [](int eligible, int running) {
    EncodePolicy policy({.max_wait_steps = 100, .encode_call_steps = 1});
    int waited = 0;
    while (!policy.EncodeNow(eligible, running, /*encoding=*/false)) ++waited;
    return waited;
  };
  EXPECT_EQ(steps(1, 12), 11);
  EXPECT_EQ(steps(3, 12), 3);
  EXPECT_EQ(steps(12, 12), 0);
  EXPECT_EQ(steps(3, 6), 1);
}

int64_t Cost(const std::vector<int>& lengths, const std::vector<std::vector<int>>& groups,
             int call_tokens) {
  int64_t cost = 0;
  for (const std::vector<int>& group : groups) {
    int longest = 0;
    for (int i : group) longest = std::max(longest, lengths[i]);
    cost += int64_t{longest} * std::ssize(group) + call_tokens;
  }
  return cost;
}

// All partitions of n sources into groups.
int64_t MinCost(const std::vector<int>& lengths, int call_tokens) {
  int64_t min = std::numeric_limits<int64_t>::max();
  std::vector<std::vector<int>> groups;
  std::function<void(int)> place = [&](int i) {
    if (i == std::ssize(lengths)) {
      min = std::min(min, Cost(lengths, groups, call_tokens));
      return;
    }
    for (size_t g = 0; g < groups.size(); ++g) {
      groups[g].push_back(i);
      place(i + 1);
      groups[g].pop_back();
    }
    groups.push_back({i});
    place(i + 1);
    groups.pop_back();
  };
  place(0);
  return min;
}

TEST(GroupByLengthTest, FindsThePartitionOfMinCost) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    std::vector<int> lengths(1 + random() % 8);
    for (int& length : lengths) length = 1 + random() % 60;
    const int call_tokens = random() % 40;
    EXPECT_EQ(Cost(lengths, GroupByLength(lengths, call_tokens), call_tokens),
              MinCost(lengths, call_tokens));
  }
}

TEST(GroupByLengthTest, EverySourceIsInOneGroupAndPaddingIsBounded) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<int> lengths(random() % 160);
    for (int& length : lengths) length = 1 + random() % 500;
    const int call_tokens = random() % 100;
    std::vector<int> seen;
    int64_t padding = 0;
    for (const std::vector<int>& group : GroupByLength(lengths, call_tokens)) {
      for (int i : group) {
        seen.push_back(i);
        padding += lengths[group.back()] - lengths[i];  // the last is the longest
      }
    }
    EXPECT_LE(padding, int64_t{call_tokens} * std::ssize(lengths));
    std::sort(seen.begin(), seen.end());
    ASSERT_EQ(seen.size(), lengths.size());
    for (int i = 0; i < std::ssize(seen); ++i) ASSERT_EQ(seen[i], i);
  }
}

TEST(GroupByLengthTest, CheapCallsSplitByLengthAndExpensiveOnesShareAGroup) {
  const std::vector<int> lengths = {9, 3, 9, 30, 4};
  EXPECT_THAT(GroupByLength(lengths, 0),
              ElementsAre(ElementsAre(1), ElementsAre(4), ElementsAre(0, 2), ElementsAre(3)));
  EXPECT_THAT(GroupByLength(lengths, 1000), ElementsAre(ElementsAre(1, 4, 0, 2, 3)));
  EXPECT_THAT(GroupByLength(lengths, 12), ElementsAre(ElementsAre(1, 4, 0, 2), ElementsAre(3)))
      << "11 tokens of padding are less than a call, 21 for each are not";
  EXPECT_THAT(GroupByLength({}, 5), IsEmpty());
}

TEST(EncodePolicyTest, UsesTheCostsThatTheEngineMeasured) {
  const EncodeOptions given = {.max_wait_steps = 3, .encode_call_steps = 0.5f};
  model::EngineInfo info;
  EXPECT_EQ(WithMeasuredCost(given, info).encode_call_steps, 0.5f);
  EXPECT_EQ(WithMeasuredCost(given, info).encode_call_tokens, EncodeOptions{}.encode_call_tokens);
  info.encoder_cost = {.call_steps = 4, .call_tokens = 900};
  EXPECT_EQ(WithMeasuredCost(given, info).encode_call_steps, 4);
  EXPECT_EQ(WithMeasuredCost(given, info).encode_call_tokens, 900);
  EXPECT_EQ(WithMeasuredCost(given, info).max_wait_steps, 3);
}

}  // namespace
}  // namespace linnet::server
