#include "server/admission/expected_work.h"

#include <cstdint>
#include <limits>

#include "gmock/gmock.h"

namespace linnet::server {
namespace {

// Sequences with sources of 10 tokens at beam 5, whose targets may have 320.
constexpr CallSize kCall = {
    .tokens = 5 * 330, .longest = 330, .rows = 5, .source = 5 * 10, .least = 5 * 11};

StepReport Finished(int64_t source_tokens, int64_t steps) {
  return {.finished_steps = steps, .finished_source_tokens = source_tokens};
}

StepReport Running(int64_t source_tokens, int64_t steps) {
  return {.running_source_tokens = source_tokens, .running_steps = steps};
}

TEST(ExpectedWorkTest, ExpectsTheMostUntilASequenceHasFinished) {
  ExpectedWork work;
  EXPECT_EQ(work.Of(kCall), 1650);
  work.StepMade(Running(10, 3));
  EXPECT_EQ(work.Of(kCall), 1650);
  work.StepMade(Finished(10, 12));
  EXPECT_EQ(work.Of(kCall), 5 * (10 + 12));
  EXPECT_EQ(work.Of({.tokens = 1650}), 1650) << "the source is not known";
}

TEST(ExpectedWorkTest, FollowsTheSequencesOfLate) {
  ExpectedWork work;
  for (int i = 0; i < 1000; ++i) work.StepMade(Finished(10, 12));
  EXPECT_EQ(work.Of(kCall), 5 * 22);
  for (int i = 0; i < 5000; ++i) work.StepMade(Finished(10, 30));
  EXPECT_NEAR(static_cast<double>(work.Of(kCall)), 5 * 40, 2);
}

TEST(ExpectedWorkTest, StaysWithinTheLimitsOfTheCall) {
  ExpectedWork work;
  work.StepMade(Finished(10, 1'000'000));
  EXPECT_EQ(work.Of(kCall), 1650);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(work.Of({.tokens = kMost, .source = kMost}), kMost);
  ExpectedWork brief;
  brief.StepMade(Finished(1000, 1));
  EXPECT_EQ(brief.Of(kCall), 5 * 11) << "one token at least";
}

TEST(ExpectedWorkTest, LongerSequencesCountBeforeTheyEnd) {
  ExpectedWork work;
  work.StepMade(Finished(10, 12));
  work.StepMade(Running(100, 60));
  EXPECT_EQ(work.Of(kCall), 5 * 22) << "they are half done";
  work.StepMade(Running(100, 2000));
  EXPECT_EQ(work.Of(kCall), 5 * (10 + 200));
  work.StepMade(Running(0, 0));
  EXPECT_EQ(work.Of(kCall), 5 * 22);
}

TEST(CallSizeTest, SumsItsSegments) {
  model::SequenceInput input;
  input.source = {5, 6, 7, 2};
  input.options.beam_size = 3;
  input.options.min_target_tokens = 2;
  input.options.max_target_tokens = 20;
  CallSize size;
  size.Add(input);
  input.options.beam_size = 1;
  input.options.min_target_tokens = 20;
  size.Add(input);
  EXPECT_EQ(size.tokens, 3 * 24 + 24);
  EXPECT_EQ(size.longest, 24);
  EXPECT_EQ(size.rows, 4);
  EXPECT_EQ(size.source, 3 * 4 + 4);
  EXPECT_EQ(size.least, 3 * 6 + 24);
}

TEST(CallSizeTest, TargetToScoreHasAKnownLength) {
  model::SequenceInput input;
  input.source = {5, 2};
  input.target = {7, 8, 9, 2};
  input.options.max_target_tokens = 3;
  CallSize size;
  size.Add(input);
  EXPECT_EQ(size.least, size.tokens);
}

}  // namespace
}  // namespace linnet::server
