#include "model/runtime/search/row_edit.h"

#include <numeric>
#include <vector>

#include "gmock/gmock.h"

namespace linnet::model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RowEditTest, ForbiddenTokensHaveNoCandidateScore) {
  const std::vector<TokenId> rare = {4, 6, 8};
  RowEdit edit;
  edit.Forbid(7);
  edit.Forbid(std::vector<TokenId>{6, 1});
  edit.ForbidUnlikely(rare);
  edit.Adjust({.token = 3, .penalty = 1});
  edit.Adjust({.token = 8, .penalty = 1});
  edit.Finish();
  EXPECT_THAT(edit.set_aside(), ElementsAre(1, 3, 4, 6, 7, 8));
  EXPECT_EQ(edit.adjusted().size(), 1) << "8 is forbidden";
  EXPECT_FALSE(edit.IsForbidden(3));
  EXPECT_TRUE(edit.IsForbidden(8));
  EXPECT_FALSE(edit.IsForbidden(5));
}

TEST(RowEditTest, ExemptionHoldsForUnlikelyTokensOnly) {
  const std::vector<TokenId> rare = {4, 6};
  RowEdit edit;
  edit.ForbidUnlikely(rare);
  edit.Exempt(4);
  edit.Exempt(6);
  edit.Forbid(6);
  edit.Finish();
  EXPECT_THAT(edit.set_aside(), ElementsAre(6));
}

TEST(RowEditTest, ChangesOfATokenCountTogether) {
  RowEdit edit;
  edit.Adjust({.token = 1, .score_factor = 2});
  edit.Adjust({.token = 1, .penalty = 0.5f});
  edit.Adjust({.token = 2, .logit_factor = 2});
  edit.Finish();
  const std::vector<float> logits = {0, 3, -3};
  const LogitRow row = {.logits = logits, .log_normalizer = 4};
  EXPECT_EQ(edit.CandidateFor(row, 1)->log_probability, (3 - 4) * 2 - 0.5f);
  EXPECT_EQ(edit.CandidateFor(row, 2)->log_probability, -6 - 4);
  EXPECT_EQ(edit.CandidateFor(row, 0)->log_probability, -4);
  EXPECT_EQ(edit.CandidateFor({.logits = logits, .log_normalizer = 1}, 1)->log_probability,
            (3 - 1) / 2.0f - 0.5f)
      << "a value above 0 is divided";
}

TEST(RowEditTest, NeedGrowsByTheTokensThatAreSetAside) {
  std::vector<TokenId> rare(100);
  std::iota(rare.begin(), rare.end(), 50);
  RowEdit edit;
  edit.Forbid(1);
  edit.Adjust({.token = 3, .penalty = -1});
  edit.NeedLogit(3);
  edit.ForbidUnlikely(rare);
  edit.Finish();
  EXPECT_EQ(edit.Need(10).best, 10 + 2 + 8) << "few of the unlikely tokens are among the best";
  EXPECT_EQ(edit.Need(10).also, 3);
  EXPECT_TRUE(edit.Need(0).all);
  edit.NeedLogit(4);
  EXPECT_TRUE(edit.Need(10).all) << "two logits";
}

TEST(RowEditTest, RowOfForbiddenTokensDoesNotSuffice) {
  std::vector<TokenId> rare(9);
  std::iota(rare.begin(), rare.end(), 0);
  RowEdit edit;
  edit.ForbidUnlikely(rare);
  edit.Finish();
  const RowNeed need = edit.Need(2);
  ASSERT_EQ(need.best, 10);
  const std::vector<float> logits(10, 1.0f);
  std::vector<TokenId> tokens = {0, 1, 2, 3, 4, 5, 6, 7, 8, 20};
  EXPECT_FALSE(edit.Suffices({.logits = logits, .tokens = tokens}, 2));
  tokens[0] = 21;
  EXPECT_TRUE(edit.Suffices({.logits = logits, .tokens = tokens}, 2));
}

TEST(RowEditTest, ClearForgetsTheStepBefore) {
  RowEdit edit;
  edit.Forbid(1);
  edit.Force(5, /*silent=*/true);
  edit.NeedWholeRow();
  edit.Finish();
  edit.Clear();
  edit.Finish();
  EXPECT_THAT(edit.set_aside(), IsEmpty());
  EXPECT_EQ(edit.forced(), kNoToken);
  EXPECT_FALSE(edit.silent());
  EXPECT_FALSE(edit.Need(1).all);
}

}  // namespace
}  // namespace linnet::model
