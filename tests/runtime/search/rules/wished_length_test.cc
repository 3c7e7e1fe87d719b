#include <string>

#include "gmock/gmock.h"
#include "tests/runtime/search/rules/rule_probe.h"

namespace linnet::model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Short below 2 tokens, full from 3 on.
class TwoTokens : public TargetLength {
 public:
  State After(std::span<const TokenId> target) const override {
    return target.size() < 2 ? State::kShort : target.size() < 3 ? State::kEnough : State::kFull;
  }
  std::span<const TokenId> word_starts() const override { return starts_; }
  std::string name() const override { return "2 tokens"; }

 private:
  std::vector<TokenId> starts_ = {6, 8};
};

TEST(WishedLengthTest, ForbidsTheEndBeforeItAndWordsBehindIt) {
  const auto rule = NewWishedLength({.length = std::make_shared<const TwoTokens>()});
  EXPECT_THAT(ForbiddenBy(*rule, {9}), ElementsAre(2));
  EXPECT_THAT(ForbiddenBy(*rule, {9, 9}), IsEmpty());
  EXPECT_THAT(ForbiddenBy(*rule, {9, 9, 9}), ElementsAre(6, 8));
  const RowEdit silent = EditBy(*rule, HypothesisOf({9, 9, 9}, /*silent=*/2));
  EXPECT_THAT(silent.set_aside(), ElementsAre(2)) << "silent tokens do not count";
  StepRules described;
  EXPECT_FALSE(rule->Describe(0, described)) << "searched on the host";
}

TEST(WishedLengthTest, IsAbsentWithoutAWish) { EXPECT_EQ(NewWishedLength({}), nullptr); }

}  // namespace
}  // namespace linnet::model
