#include "gmock/gmock.h"
#include "tests/runtime/search/rules/rule_probe.h"

namespace linnet::model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::unique_ptr<Rule> Repeats(int ngram, int times) {
  return NewNgramRepeats({.options = {.no_repeat_ngram_size = ngram, .max_ngram_repeats = times}});
}

TEST(NgramRepeatsTest, ForbidsNgramsThatOccurTwice) {
  EXPECT_THAT(ForbiddenBy(*Repeats(2, 0), {5, 6, 7, 5}), ElementsAre(6));
  EXPECT_THAT(ForbiddenBy(*Repeats(2, 0), {5, 6, 2}), ElementsAre(5)) << "2 is the start token";
}

TEST(NgramRepeatsTest, ForbidsNgramsTooOftenInARow) {
  EXPECT_THAT(ForbiddenBy(*Repeats(0, 2), {5, 6, 6}), ElementsAre(6));
  EXPECT_THAT(ForbiddenBy(*Repeats(0, 2), {5, 6}), IsEmpty());
}

TEST(NgramRepeatsTest, EosAndPhrasesMayRepeat) {
  EXPECT_THAT(ForbiddenBy(*Repeats(1, 0), {5}), ElementsAre(5)) << "eos is the start token";
  const RowEdit edit = EditBy(*Repeats(0, 1), HypothesisOf({6, 6}), /*offered=*/{6});
  EXPECT_THAT(edit.set_aside(), IsEmpty());
}

TEST(NgramRepeatsTest, DoesNotApplyInsideACharacter) {
  RowEdit edit;
  edit.StayInCharacter();
  Repeats(1, 1)->Apply(HypothesisOf({5, 5}), edit);
  edit.Finish();
  EXPECT_THAT(edit.set_aside(), IsEmpty());
}

TEST(NgramRepeatsTest, IsAbsentWhereDisabledAndInScoring) {
  EXPECT_EQ(Repeats(0, 0), nullptr);
  EXPECT_EQ(NewNgramRepeats(
                {.options = {.no_repeat_ngram_size = 1}, .target = std::vector<TokenId>{5, 2}}),
            nullptr);
}

}  // namespace
}  // namespace linnet::model
