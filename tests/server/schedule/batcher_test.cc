#include "server/schedule/batcher.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/schedule/batcher_fixture.h"
#include "tests/support/recording_sink.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

using test::Outcome;
using test::Say;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr model::TokenId kEos = 2;

TEST(BatcherTest, AdmitsASequenceWhileAnotherRuns) {
  BatcherFixture fixture;
  Outcome first, second;
  fixture.Add(Say({5, 6, 7}, first));
  fixture.Step();
  fixture.Add(Say({9}, second));
  fixture.StepsUntilIdle();
  EXPECT_THAT(first.tokens(), ElementsAre(5, 6, 7, kEos));
  EXPECT_THAT(second.tokens(), ElementsAre(9, kEos));
  EXPECT_THAT(fixture.engine.sizes, ElementsAre(1, 2, 2, 1));
}

TEST(BatcherTest, EmptySourceTakesOneStep) {
  BatcherFixture fixture;
  Outcome outcome;
  fixture.Add(Say({}, outcome));
  EXPECT_EQ(fixture.StepsUntilIdle(), 1);
  EXPECT_THAT(outcome.tokens(), ElementsAre(kEos));
}

TEST(BatcherTest, IdleStepDoesNotCallTheEngine) {
  BatcherFixture fixture;
  const StepReport report = fixture.Step();
  EXPECT_FALSE(report.stepped);
  EXPECT_TRUE(fixture.engine.sizes.empty());
}

TEST(BatcherTest, RejectsSequenceThatNeverFits) {
  BatcherFixture fixture({.rows = 4});
  Outcome outcome;
  auto sequence = Say({5}, outcome, /*beam_size=*/5);
  EXPECT_THAT(fixture.batcher.Add(sequence, fixture.now),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("4 rows")));
  EXPECT_NE(sequence, nullptr);
  EXPECT_FALSE(outcome.done());
}

TEST(BatcherTest, ReportsTheCostOfFinishedSequences) {
  BatcherFixture fixture;
  Outcome outcome;
  fixture.Add(Say({5, 6}, outcome, /*beam_size=*/2));
  StepReport last;
  while (!fixture.batcher.idle()) last = fixture.Step();
  EXPECT_EQ(last.finished_tokens, 3 + 100);
  EXPECT_EQ(last.finished_steps, 3);
  EXPECT_EQ(last.rows_limit, 64);
  EXPECT_EQ(last.ended, (*outcome.result)->times.finished);
}

TEST(BatcherTest, FailedEncoderCallEndsOnlyItsGroup) {
  BatcherFixture fixture({.unencodable = 66}, {.encode = {.encode_call_tokens = 0}});
  Outcome good, bad;
  fixture.Add(Say({5, 6, 7}, good));
  fixture.Add(Say({66}, bad));
  const StepReport first = fixture.Step();
  EXPECT_EQ(first.added, 1);
  EXPECT_EQ(first.failed, 1);
  fixture.StepsUntilIdle();
  EXPECT_EQ(bad.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(good.tokens(), ElementsAre(5, 6, 7, kEos));
}

TEST(BatcherTest, CancelFreesRowsWithinAStep) {
  BatcherFixture fixture({.rows = 2});
  Outcome cancelled, next;
  auto flag = std::make_shared<Cancellation>();
  auto sequence = Say({5, 6, 7, 8}, cancelled, /*beam_size=*/2);
  sequence->cancelled = flag;
  fixture.Add(std::move(sequence));
  fixture.Add(Say({9}, next, /*beam_size=*/2));
  fixture.Step();
  flag->Cancel();
  const StepReport report = fixture.Step();
  EXPECT_EQ(cancelled.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(report.cancelled, 1);
  EXPECT_EQ(report.added, 1) << "the next one takes the rows at once";
  fixture.StepsUntilIdle();
  EXPECT_THAT(next.tokens(), ElementsAre(9, kEos));
}

TEST(BatcherTest, DeadlineEndsRunningAndWaitingSequences) {
  BatcherFixture fixture({.rows = 1});
  Outcome running, waiting;
  auto a = Say({5, 6, 7, 8}, running);
  auto b = Say({5}, waiting);
  a->deadline = b->deadline = fixture.now + absl::Seconds(1);
  fixture.Add(std::move(a));
  fixture.Add(std::move(b));
  fixture.Step();
  fixture.now += absl::Seconds(1);
  EXPECT_EQ(fixture.Step().expired, 2);
  EXPECT_EQ(running.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(waiting.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(fixture.engine.rows_in_use(), 0);
}

TEST(BatcherTest, ResultAtTheDeadlineIsDelivered) {
  BatcherFixture fixture;
  Outcome outcome;
  auto sequence = Say({}, outcome);
  sequence->deadline =
      fixture.now + absl::Milliseconds(2);  // after the check of deadlines, before the step ends
  fixture.Add(std::move(sequence));
  fixture.Step();
  EXPECT_TRUE(outcome.result->ok());
}

TEST(BatcherTest, SequenceWithNanFailsAlone) {
  BatcherFixture fixture({.not_a_number = 66});
  Outcome bad, good;
  fixture.Add(Say({5, 66}, bad));
  fixture.Add(Say({5, 6, 7}, good));
  fixture.StepsUntilIdle();
  EXPECT_THAT(*bad.result, StatusIs(absl::StatusCode::kInternal, HasSubstr("not a number")));
  EXPECT_THAT(good.tokens(), ElementsAre(5, 6, 7, kEos));
}

TEST(BatcherTest, FailedStepEndsOnlyRunningSequences) {
  BatcherFixture fixture({.rows = 1, .failing_step = 1});
  Outcome running, waiting;
  fixture.Add(Say({5, 6}, running));
  fixture.Add(Say({7}, waiting));
  EXPECT_EQ(fixture.Step().failed, 1);
  EXPECT_EQ(running.code(), absl::StatusCode::kInternal);
  fixture.StepsUntilIdle();
  EXPECT_THAT(waiting.tokens(), ElementsAre(7, kEos));
}

TEST(BatcherTest, FailedEncoderEndsOnlyItsGroup) {
  BatcherFixture fixture({.unencodable = 66});
  Outcome running, bad, later;
  fixture.Add(Say({5, 6, 7}, running));
  fixture.Step();
  fixture.Add(Say({66}, bad));
  const StepReport report = fixture.Step();
  EXPECT_EQ(report.failed, 1);
  EXPECT_EQ(report.added, 0);
  fixture.Add(Say({8}, later));
  fixture.StepsUntilIdle();
  EXPECT_EQ(bad.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(running.tokens(), ElementsAre(5, 6, 7, kEos));
  EXPECT_THAT(later.tokens(), ElementsAre(8, kEos));
}

TEST(BatcherTest, RecordsTimesOfEachPhase) {
  BatcherFixture fixture({.rows = 1});
  Outcome first, second;
  const absl::Time start = fixture.now;
  fixture.Add(Say({}, first));
  fixture.Add(Say({}, second));
  fixture.Step();  // readings: deadlines, before and after Add, before and after Step
  fixture.Step();
  const SequenceTimes a = (*first.result)->times, b = (*second.result)->times;
  EXPECT_EQ(a.submitted, start);
  EXPECT_EQ(a.added, start + absl::Milliseconds(2));
  EXPECT_EQ(a.encoded, start + absl::Milliseconds(3));
  EXPECT_EQ(a.finished, start + absl::Milliseconds(5));
  EXPECT_EQ(b.added, start + absl::Milliseconds(7));
}

TEST(BatcherTest, ReportCountsAddUp) {
  std::vector<Outcome> outcomes(3);  // outlive the batcher, which ends the remaining sequences
  BatcherFixture fixture({.rows = 3});
  fixture.Add(Say({5}, outcomes[0], /*beam_size=*/2));
  fixture.Add(Say({6, 7}, outcomes[1], /*beam_size=*/1));
  fixture.Add(Say({8}, outcomes[2], /*beam_size=*/1));
  const StepReport first = fixture.Step();
  EXPECT_EQ(first.added, 2);
  EXPECT_EQ(first.sequences, 2);
  EXPECT_EQ(first.rows, 3);
  EXPECT_EQ(first.waiting, 1);
  EXPECT_EQ(first.running, 2);
  EXPECT_EQ(first.encode, absl::Milliseconds(1));
  EXPECT_EQ(first.decode, absl::Milliseconds(1));
  const StepReport second = fixture.Step();
  EXPECT_EQ(second.finished, 1);
  EXPECT_EQ(second.target_tokens, 2);
  EXPECT_EQ(second.running, 1);
}

TEST(BatcherTest, EndAllEndsWaitingAndRunningOnce) {
  BatcherFixture fixture({.rows = 1});
  Outcome running, waiting;
  fixture.Add(Say({5, 6}, running));
  fixture.Add(Say({7}, waiting));
  fixture.Step();
  fixture.batcher.EndAll(absl::UnavailableError("closing"), absl::UnavailableError("closing"));
  EXPECT_EQ(running.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(waiting.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(fixture.engine.rows_in_use(), 0);
  EXPECT_TRUE(fixture.batcher.idle());
}

TEST(BatcherTest, DestructorEndsAllSequences) {
  Outcome outcome;
  {
    BatcherFixture fixture;
    fixture.Add(Say({5, 6}, outcome));
    fixture.Step();
  }
  EXPECT_EQ(outcome.code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace linnet::server
