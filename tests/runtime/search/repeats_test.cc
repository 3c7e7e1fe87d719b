#include "model/runtime/search/repeats.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "model/runtime/engine.h"
#include "model/runtime/search/beam_search.h"

namespace linnet::model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

using Tokens = std::vector<TokenId>;

Tokens Excluded(const Tokens& target, int times) {
  Tokens excluded;
  ExcludeConsecutiveRepeats(target, times, excluded);
  return excluded;
}

// 0, 1, … n - 1, so many times and `rest` tokens more.
Tokens Cycle(int n, int times, int rest) {
  Tokens tokens;
  for (int i = 0; i < n * times + rest; ++i) tokens.push_back(i % n);
  return tokens;
}

TEST(ConsecutiveRepeatsTest, CountsOccurrencesOfAnyNgramInARow) {
  EXPECT_EQ(ConsecutiveRepeats(Tokens{}), 0);
  EXPECT_EQ(ConsecutiveRepeats(Tokens{4}), 1);
  EXPECT_EQ(ConsecutiveRepeats(Tokens{4, 5, 6, 4, 5}), 1);
  EXPECT_EQ(ConsecutiveRepeats(Tokens{4, 5, 5, 6}), 2);
  EXPECT_EQ(ConsecutiveRepeats(Tokens{7, 4, 5, 4, 8}), 1);
  EXPECT_EQ(ConsecutiveRepeats(Tokens{7, 4, 5, 4, 5, 8}), 2);
  EXPECT_EQ(ConsecutiveRepeats(Tokens{7, 4, 5, 4, 5, 4, 8}), 3) << "5 joins them";
  EXPECT_EQ(ConsecutiveRepeats(Tokens{7, 4, 5, 4, 5, 4, 5, 8}), 3);
  EXPECT_EQ(ConsecutiveRepeats(Tokens{4, 5, 6, 4, 5, 6, 4, 5, 6, 4, 5}), 4);
  EXPECT_EQ(ConsecutiveRepeats(Cycle(kMaxRepeatedNgram, 3, 5)), 3);
  EXPECT_EQ(ConsecutiveRepeats(Cycle(kMaxRepeatedNgram + 1, 3, 5)), 1) << "too long to compare";
}

TEST(ExcludeConsecutiveRepeatsTest, ExcludesTheTokenThatEndsOneTooMany) {
  EXPECT_THAT(Excluded({}, 1), IsEmpty());
  EXPECT_THAT(Excluded({4}, 1), ElementsAre(4));
  EXPECT_THAT(Excluded({4, 4}, 2), ElementsAre(4));
  EXPECT_THAT(Excluded({4, 4}, 3), IsEmpty());
  EXPECT_THAT(Excluded({4, 5, 4}, 1), UnorderedElementsAre(4, 5)) << "4 may begin the second time";
  EXPECT_THAT(Excluded({4, 5, 4, 5}, 2), ElementsAre(4)) << "5 joins them, as a comma";
  EXPECT_THAT(Excluded({4, 5, 4, 5, 4}, 2), ElementsAre(5));
  EXPECT_THAT(Excluded({4, 5, 6, 4, 5, 6, 4}, 2), ElementsAre(5));
  EXPECT_THAT(Excluded({4, 5, 6, 4, 5, 6}, 2), IsEmpty());
  EXPECT_THAT(Excluded({4, 5, 4, 6, 4}, 2), IsEmpty());
  EXPECT_THAT(Excluded({4, 4, 5, 4, 4, 5, 4, 4}, 2), UnorderedElementsAre(4, 5));
  EXPECT_THAT(Excluded(Cycle(kMaxRepeatedNgram, 2, kMaxRepeatedNgram - 1), 2),
              ElementsAre(kMaxRepeatedNgram - 1));
  EXPECT_THAT(Excluded(Cycle(kMaxRepeatedNgram, 2, kMaxRepeatedNgram - 2), 2),
              ElementsAre(kMaxRepeatedNgram - 2));
  EXPECT_THAT(Excluded(Cycle(kMaxRepeatedNgram, 2, kMaxRepeatedNgram - 3), 2), IsEmpty());
  EXPECT_THAT(Excluded(Cycle(kMaxRepeatedNgram + 1, 2, kMaxRepeatedNgram), 2), IsEmpty());
  EXPECT_THAT(Excluded({4, 4, 4}, 0), IsEmpty()) << "0 disables the rule";
  EXPECT_THAT(Excluded({4, 4, 4}, 1 << 30), IsEmpty());
}

TEST(StartSearchTest, TargetRepeatsAtMostAsOftenAsItsText) {
  EngineInfo info;
  const auto repeats = [&](Tokens source, int option, int around) {
    SequenceInput input;
    input.source = std::move(source);
    input.before_text = input.after_text = around;
    input.options.max_ngram_repeats = option;
    return StartSearch(input, info)->options().max_ngram_repeats;
  };
  EXPECT_EQ(repeats({4, 5, 6, 2}, 2, 0), 2);
  EXPECT_EQ(repeats({4, 4, 4, 4, 2}, 2, 0), 4);
  EXPECT_EQ(repeats({4, 4, 4, 4, 2}, 0, 0), 0) << "0 disables the rule";
  EXPECT_EQ(repeats({4, 4, 4, 4, 2, 2}, 2, 1), 3) << "language tokens are no text";
}

TEST(BeamSearchTest, ConstraintMayRepeatItself) {
  const std::vector<TokenId> phrase = {5, 5, 5, 5};
  const SpecialTokens special;
  BeamSearch search(
      {{.beam_size = 2, .min_target_tokens = 0, .max_target_tokens = 6, .max_ngram_repeats = 2},
       special,
       {},
       Constraints({phrase}, nullptr)});
  const std::vector<float> row = {0, 0, 1, 0, 0, 0, 2};
  while (!search.finished()) {
    std::vector<float> logits, normalizers(search.live(), 3.0f);
    for (int i = 0; i < search.live(); ++i) logits.insert(logits.end(), row.begin(), row.end());
    ASSERT_TRUE(search.Advance(logits, normalizers).ok());
  }
  EXPECT_EQ(search.Results().front().unmet_constraints, 0);
}

}  // namespace
}  // namespace linnet::model
