// The engine's row bookkeeping, without torch and a model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "model/torch/decoding/backpointers.h"
#include "model/torch/encoder/free_list.h"

namespace linnet::model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FreeListTest, LeaseFreesItsNumbersOnce) {
  FreeList list(4);
  {
    FreeList::Lease first = list.Take(3);
    EXPECT_THAT(first.numbers(), ElementsAre(0, 1, 2));
    EXPECT_EQ(list.free(), 1);
    const FreeList::Lease moved = std::move(first);
    EXPECT_THAT(moved.numbers(), ElementsAre(0, 1, 2));
    EXPECT_THAT(first.numbers(), IsEmpty());  // NOLINT(bugprone-use-after-move): what is tested
  }
  EXPECT_EQ(list.free(), 4);
  EXPECT_EQ(list.used(), 0);
}

TEST(FreeListTest, NumbersBeginWithTheFirst) {
  FreeList list(2, /*first=*/1);
  EXPECT_THAT(list.Take(2).numbers(), ElementsAre(1, 2));
}

TEST(FreeListTest, AssignmentFreesTheOldLease) {
  FreeList list(4);
  FreeList::Lease lease = list.Take(2);
  lease = list.Take(1);
  EXPECT_THAT(lease.numbers(), ElementsAre(2));
  EXPECT_EQ(list.free(), 3);
  lease = FreeList::Lease();
  EXPECT_EQ(list.free(), 4);
}

TEST(FreeListTest, NeverAllocatesANumberTwice) {
  FreeList list(10);
  std::mt19937 random(5);
  std::vector<FreeList::Lease> leases;
  for (int round = 0; round < 500; ++round) {
    if (random() % 2 == 0 && list.free() > 0) {
      leases.push_back(list.Take(1 + static_cast<int>(random() % list.free())));
    } else if (!leases.empty()) {
      leases.erase(leases.begin() + random() % leases.size());
    }
    std::vector<int> lent(10);
    for (const auto& lease : leases) {
      for (int32_t number : lease.numbers()) ++lent[number];
    }
    EXPECT_LE(*std::max_element(lent.begin(), lent.end()), 1);
    EXPECT_EQ(std::count(lent.begin(), lent.end(), 1), list.used());
  }
}

TEST(BackpointersTest, FollowsTheParentsBack) {
  Backpointers backpointers(/*slots=*/6, /*reach=*/3);
  const std::vector<int32_t> slots = {4, 2, 5};
  backpointers.Start(slots);
  backpointers.Descend(slots, std::vector<int>{0, 0, 0});  // the first hypothesis becomes three
  EXPECT_THAT(std::vector(backpointers.of(2).begin(), backpointers.of(2).begin() + 2),
              ElementsAre(2, 4));
  backpointers.Descend(slots, std::vector<int>{2, 0, 2});
  EXPECT_THAT(backpointers.of(4), ElementsAre(4, 5, 4));
  EXPECT_THAT(backpointers.of(2), ElementsAre(2, 4, 4));
  EXPECT_THAT(backpointers.of(5), ElementsAre(5, 5, 4));
  backpointers.Descend(slots, std::vector<int>{1, 0});  // one has ended
  EXPECT_THAT(backpointers.of(4), ElementsAre(4, 2, 4));
  EXPECT_THAT(backpointers.of(2), ElementsAre(2, 4, 5));
}

// Compared with a beam that copies its inputs, as an engine without the table would.
TEST(BackpointersTest, EqualsBeamThatCopiesItsInputs) {
  constexpr int kReach = 5, kBeam = 4;
  const std::vector<int32_t> slots = {3, 1, 7, 0};
  Backpointers backpointers(8, kReach);
  backpointers.Start(slots);
  std::mt19937 random(3);
  std::vector<std::vector<int>> state(kReach, std::vector<int>(8, -1));  // [step mod reach][slot]
  std::vector<std::vector<int>> carried(1);  // per hypothesis, newest last
  int next_input = 0;
  for (int step = 0; step < 60; ++step) {
    const int live = static_cast<int>(carried.size());
    for (int i = 0; i < live; ++i) {
      state[step % kReach][slots[i]] = next_input;
      carried[i].push_back(next_input++);
    }
    for (int i = 0; i < live; ++i) {
      for (int j = 0; j < std::min(kReach, step + 1); ++j) {
        EXPECT_EQ(state[(step - j) % kReach][backpointers.of(slots[i])[j]], carried[i][step - j]);
      }
    }
    std::vector<int> parents(kBeam);
    for (int& parent : parents) parent = static_cast<int>(random() % live);
    std::vector<std::vector<int>> children;
    for (int parent : parents) children.push_back(carried[parent]);
    carried = std::move(children);
    backpointers.Descend(slots, parents);
  }
}

}  // namespace
}  // namespace linnet::model
