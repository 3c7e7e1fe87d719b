#include "model/runtime/search/live_hypotheses.h"

#include <algorithm>
#include <random>

#include "gmock/gmock.h"

namespace linnet::model {
namespace {

using ::testing::ElementsAreArray;

struct Copied {
  std::vector<TokenId> tokens;
  std::vector<float> scores;
  float sum = 0;
};

int CommonPrefix(const std::vector<Copied>& all) {
  int length = 0;
  const auto has_same = [&](const Copied& other) {
    return other.tokens[length] == all[0].tokens[length] &&
           other.scores[length] == all[0].scores[length];
  };
  while (length < std::ssize(all[0].tokens) && std::ranges::all_of(all, has_same)) ++length;
  return length;
}

// Few tokens and parents in any order, so that hypotheses are equal, end, come back and change
// places.
TEST(LiveHypothesesTest, AreThoseThatCopiesOfEachWouldBe) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    LiveHypotheses live;
    std::vector<Copied> copied(1);
    for (int step = 0; step < 60; ++step) {
      std::vector<Candidate> next(random() % 7 + (step < 55 ? 1 : 0));
      std::vector<Copied> extended;
      for (Candidate& candidate : next) {
        candidate = {.sum = static_cast<float>(random() % 100),
                     .log_probability = static_cast<float>(random() % 2),
                     .parent = static_cast<int>(random() % copied.size()),
                     .token = static_cast<TokenId>(random() % 3)};
        Copied& copy = extended.emplace_back(copied[candidate.parent]);
        copy.tokens.push_back(candidate.token);
        copy.scores.push_back(candidate.log_probability);
        copy.sum = candidate.sum;
        EXPECT_THAT(live.TokensWith(candidate.parent, candidate.token),
                    ElementsAreArray(copy.tokens));
      }
      live.Step(next);
      copied = std::move(extended);
      ASSERT_EQ(live.size(), std::ssize(copied));
      for (int i = 0; i < live.size(); ++i) {
        ASSERT_THAT(live.tokens(i), ElementsAreArray(copied[i].tokens)) << "seed " << seed;
        ASSERT_THAT(live.token_scores(i), ElementsAreArray(copied[i].scores));
        ASSERT_EQ(live.sum(i), copied[i].sum);
      }
      if (copied.empty()) break;
      ASSERT_EQ(live.common_prefix(), CommonPrefix(copied)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace linnet::model
