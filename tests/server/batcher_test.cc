#include "server/schedule/batcher.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "server/base/errors.h"
#include "tests/support/echo_engine.h"
#include "tests/support/recording_sink.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

using test::EchoEngine;
using test::Outcome;
using test::Say;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr model::TokenId kEos = 2;

// A batcher whose clock is a number: every look at it is a millisecond later.
struct BatcherFixture {
  explicit BatcherFixture(EchoEngine::Options engine_options = {}, BatcherOptions options = {})
      : engine(std::move(engine_options)), batcher(engine, options) {}

  void Add(std::unique_ptr<Sequence> sequence) { ASSERT_THAT(batcher.Add(sequence, now), IsOk()); }
  StepReport Step() {
    return batcher.Step([this] { return now += absl::Milliseconds(1); });
  }
  int StepsUntilIdle() {
    int steps = 0;
    for (; !batcher.idle(); ++steps) Step();
    return steps;
  }

  absl::Time now = absl::FromUnixSeconds(1'000'000);
  EchoEngine engine;
  Batcher batcher;
};

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

TEST(BatcherTest, NeverOvertakesTheFirstWaitingSequence) {
  BatcherFixture fixture({.rows = 4});
  Outcome running, wide, narrow;
  fixture.Add(Say({5, 6, 7}, running, /*beam_size=*/2));
  fixture.Step();
  fixture.Add(Say({8}, wide, /*beam_size=*/3));
  fixture.Add(Say({9}, narrow, /*beam_size=*/1));
  fixture.Step();
  EXPECT_EQ(fixture.engine.sequences(), 1) << "the narrow one would fit, but it came later";
  fixture.StepsUntilIdle();
  EXPECT_THAT(fixture.engine.rows, ElementsAre(2, 2, 2, 2, 4, 4));
}

TEST(BatcherTest, AdmitsANewClientBeforeALongQueue) {
  BatcherFixture fixture({.rows = 2});
  std::vector<Outcome> many(6);
  Outcome one;
  auto of = [](std::unique_ptr<Sequence> sequence, const char* client) {
    sequence->caller.client = client;
    return sequence;
  };
  for (Outcome& outcome : many) fixture.Add(of(Say({5, 6}, outcome), "many"));
  fixture.Step();
  fixture.Add(of(Say({7}, one), "one"));
  while (!one.done()) fixture.Step();
  EXPECT_EQ(std::count_if(many.begin(), many.end(), [](const auto& o) { return o.done(); }), 2)
      << "those that were seated when it came";
  fixture.StepsUntilIdle();
}

std::unique_ptr<Sequence> OfCall(uint64_t call, std::unique_ptr<Sequence> sequence) {
  sequence->caller.call = call;
  return sequence;
}

TEST(BatcherTest, LimitsTheRowsOfOneCall) {
  std::vector<Outcome> lines(20);  // outlive the house, which ends what is left
  Outcome other;
  BatcherFixture fixture({.rows = 8}, {.max_call_rows_ratio = 0.75});
  for (Outcome& line : lines) fixture.Add(OfCall(7, Say({5, 6, 7}, line, /*beam_size=*/2)));
  EXPECT_EQ(fixture.Step().rows, 6);
  fixture.Add(OfCall(8, Say({9}, other, /*beam_size=*/2)));
  EXPECT_EQ(fixture.Step().rows, 8) << "the rest is for others";
  fixture.Step();
  EXPECT_TRUE(other.done());
  for (int i = 0; !fixture.batcher.idle(); ++i) EXPECT_LE(fixture.Step().rows, 6);
}

TEST(BatcherTest, AdmitsOneSequenceBeyondTheRowLimitOfACall) {
  Outcome outcome;
  BatcherFixture fixture({.rows = 8}, {.max_call_rows_ratio = 0.1});
  fixture.Add(OfCall(7, Say({5}, outcome, /*beam_size=*/4)));
  EXPECT_EQ(fixture.Step().rows, 4);
  fixture.StepsUntilIdle();
}

constexpr ShedOptions kShed = {.interval = absl::Milliseconds(20),
                               .max_wait = absl::Milliseconds(15)};

TEST(BatcherTest, ShedsUnderOverloadWithRetryDelay) {
  std::vector<Outcome> outcomes(3);
  BatcherFixture fixture({.rows = 1}, {.shed = kShed});
  fixture.Add(Say(std::vector<model::TokenId>(50, 5), outcomes[0]));
  fixture.Add(Say({6}, outcomes[1]));
  StepReport sum;
  for (int i = 0; i < 12; ++i) sum.shed += fixture.Step().shed;
  EXPECT_EQ(sum.shed, 1);
  EXPECT_THAT(*outcomes[1].result, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(ErrorReason(outcomes[1].result->status()), "WAITED_TOO_LONG");
  fixture.Add(Say({7}, outcomes[2]));
  EXPECT_EQ(fixture.Step().shed, 0) << "it has only come";
  EXPECT_FALSE(outcomes[0].done()) << "what has begun goes on";
  fixture.StepsUntilIdle();
}

TEST(BatcherTest, NeverShedsAStartedCall) {
  std::vector<Outcome> outcomes(3);
  BatcherFixture fixture({.rows = 1}, {.shed = kShed});
  for (Outcome& outcome : outcomes)
    fixture.Add(OfCall(7, Say(std::vector<model::TokenId>(30, 5), outcome)));
  fixture.StepsUntilIdle();
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.result->ok());
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

TEST(BatcherTest, ReportsAFullEngine) {
  BatcherFixture fixture({.rows = 4});
  std::vector<Outcome> outcomes(4);
  fixture.Add(Say({5, 6}, outcomes[0], /*beam_size=*/2));
  EXPECT_FALSE(fixture.Step().full);
  fixture.Add(Say({5, 6, 7}, outcomes[1], /*beam_size=*/2));
  StepReport report = fixture.Step();
  while (report.sequences < 2) report = fixture.Step();
  EXPECT_FALSE(report.full) << "nobody waits";
  EXPECT_EQ(report.rows, 4);
  fixture.Add(Say({5}, outcomes[2], /*beam_size=*/2));
  report = fixture.Step();
  EXPECT_TRUE(report.full);
  EXPECT_EQ(report.rows, 4);
  fixture.StepsUntilIdle();
}

TEST(BatcherTest, FullEncoderCacheDelaysAdmission) {
  BatcherFixture fixture({.encoder_cache_tokens = 8, .block_tokens = 4});
  Outcome a, b;
  fixture.Add(Say({5, 6, 7, 8}, a));  // five tokens: two blocks, the whole memory
  fixture.Add(Say({9}, b));
  EXPECT_EQ(fixture.Step().waiting, 1);
  fixture.StepsUntilIdle();
  EXPECT_THAT(fixture.engine.groups, ElementsAre(1, 1));
}

TEST(BatcherTest, LimitsEncodedTokensBetweenSteps) {
  BatcherFixture fixture({}, {.max_encode_tokens = 12});
  std::vector<Outcome> outcomes(4);
  fixture.Add(Say({5, 6, 7}, outcomes[0]));            // 4 tokens
  fixture.Add(Say({5}, outcomes[1]));                  // 2, padded to 4
  fixture.Add(Say({5, 6, 7, 8, 9}, outcomes[2]));      // 6: 12
  fixture.Add(Say({5, 6, 7, 8, 9, 10}, outcomes[3]));  // 7: too many
  const StepReport first = fixture.Step();
  EXPECT_EQ(first.admitted, 3);
  EXPECT_EQ(first.encoded_tokens, 12);
  EXPECT_EQ(first.padded_encoded_tokens, 18);
  fixture.StepsUntilIdle();
  EXPECT_THAT(fixture.engine.groups, ElementsAre(3, 1));
}

TEST(BatcherTest, EncodesUnequalLengthsApartForTheSameStep) {
  std::vector<Outcome> outcomes(4);  // outlive the house, which ends what is left
  BatcherFixture fixture({}, {.admit = {.encode_call_tokens = 3}});
  fixture.Add(Say(std::vector<model::TokenId>(30, 5), outcomes[0]));
  fixture.Add(Say({5}, outcomes[1]));
  fixture.Add(Say(std::vector<model::TokenId>(29, 6), outcomes[2]));
  fixture.Add(Say({5, 6}, outcomes[3]));
  const StepReport first = fixture.Step();
  EXPECT_THAT(fixture.engine.groups, ElementsAre(2, 2));
  EXPECT_EQ(first.encoder_calls, 2);
  EXPECT_EQ(first.encode, absl::Milliseconds(2)) << "a look at the clock before and after each";
  EXPECT_EQ(first.encoded_tokens, 31 + 2 + 30 + 3);
  EXPECT_EQ(first.padded_encoded_tokens, 2 * 31 + 2 * 3);
  EXPECT_EQ(first.sequences, 4);
  fixture.StepsUntilIdle();
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.result->ok());
}

TEST(BatcherTest, FailedEncoderCallEndsOnlyItsGroup) {
  BatcherFixture fixture({.unencodable = 66}, {.admit = {.encode_call_tokens = 0}});
  Outcome good, bad;
  fixture.Add(Say({5, 6, 7}, good));
  fixture.Add(Say({66}, bad));
  const StepReport first = fixture.Step();
  EXPECT_EQ(first.admitted, 1);
  EXPECT_EQ(first.failed, 1);
  fixture.StepsUntilIdle();
  EXPECT_EQ(bad.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(good.tokens(), ElementsAre(5, 6, 7, kEos));
}

TEST(BatcherTest, DelaysAdmissionUpToMaxWaitSteps) {
  std::vector<Outcome> outcomes(4);  // outlive the house, which ends what is left
  BatcherFixture fixture({}, {.admit = {.max_wait_steps = 3, .encode_call_steps = 100}});
  fixture.Add(Say(std::vector<model::TokenId>(20, 5), outcomes[0]));
  EXPECT_EQ(fixture.Step().admitted, 1) << "nobody is held up";
  fixture.Add(Say({6}, outcomes[1]));
  EXPECT_EQ(fixture.Step().admitted, 0);
  fixture.Add(Say({7}, outcomes[2]));
  EXPECT_EQ(fixture.Step().admitted, 0);
  EXPECT_EQ(fixture.Step().admitted, 0);
  fixture.Add(Say({8}, outcomes[3]));
  EXPECT_EQ(fixture.Step().admitted, 3);
  EXPECT_THAT(fixture.engine.groups, ElementsAre(1, 3));
}

TEST(BatcherTest, StepsWithoutFreeRowsDoNotCountAsDelay) {
  std::vector<Outcome> outcomes(4);  // outlive the house, which ends what is left
  BatcherFixture fixture({.rows = 2}, {.admit = {.max_wait_steps = 2, .encode_call_steps = 100}});
  fixture.Add(Say({5}, outcomes[0]));
  fixture.Add(Say({5, 5, 5, 5, 5, 5, 5, 5, 5}, outcomes[1]));
  fixture.Step();
  fixture.Add(Say({6}, outcomes[2]));
  fixture.Add(Say({7}, outcomes[3]));
  EXPECT_EQ(fixture.Step().admitted, 0) << "no place";
  EXPECT_EQ(fixture.Step().admitted, 0) << "a place, a step to wait";
  EXPECT_EQ(fixture.Step().admitted, 0);
  EXPECT_EQ(fixture.Step().admitted, 1);
}

TEST(BatcherTest, AdmitsASequenceLongerThanTheEncodeLimit) {
  BatcherFixture fixture({}, {.max_encode_tokens = 2});
  Outcome outcome;
  fixture.Add(Say({5, 6, 7, 8}, outcome));
  fixture.StepsUntilIdle();
  EXPECT_TRUE(outcome.result->ok());
}

TEST(BatcherTest, LimitsRunningSequences) {
  BatcherFixture fixture({}, {.max_sequences = 2});
  std::vector<Outcome> outcomes(5);
  for (Outcome& outcome : outcomes) fixture.Add(Say({5, 6}, outcome));
  fixture.StepsUntilIdle();
  EXPECT_THAT(fixture.engine.sizes, ElementsAre(2, 2, 2, 2, 2, 2, 1, 1, 1));
}

TEST(BatcherTest, CancelFreesRowsWithinAStep) {
  BatcherFixture fixture({.rows = 2});
  Outcome gone, next;
  auto flag = std::make_shared<Cancellation>();
  auto sequence = Say({5, 6, 7, 8}, gone, /*beam_size=*/2);
  sequence->cancelled = flag;
  fixture.Add(std::move(sequence));
  fixture.Add(Say({9}, next, /*beam_size=*/2));
  fixture.Step();
  flag->Cancel();
  const StepReport report = fixture.Step();
  EXPECT_EQ(gone.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(report.cancelled, 1);
  EXPECT_EQ(report.admitted, 1) << "the next one sits in the rows at once";
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
      fixture.now + absl::Milliseconds(2);  // after the look that drops, before the step is over
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
  EXPECT_EQ(report.admitted, 0);
  fixture.Add(Say({8}, later));
  fixture.StepsUntilIdle();
  EXPECT_EQ(bad.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(running.tokens(), ElementsAre(5, 6, 7, kEos));
  EXPECT_THAT(later.tokens(), ElementsAre(8, kEos));
}

TEST(BatcherTest, FailsSequenceThatDoesNotFitAnEmptyEngine) {
  BatcherFixture fixture({.never_has_room = true});
  Outcome outcome;
  fixture.Add(Say({5}, outcome));
  fixture.Step();
  EXPECT_THAT(*outcome.result, StatusIs(absl::StatusCode::kInternal, HasSubstr("no room")));
  EXPECT_TRUE(fixture.batcher.idle());
}

TEST(BatcherTest, RecordsTimesOfEachPhase) {
  BatcherFixture fixture({.rows = 1});
  Outcome first, second;
  const absl::Time start = fixture.now;
  fixture.Add(Say({}, first));
  fixture.Add(Say({}, second));
  fixture.Step();  // looks: drop, before and after Seat, before and after Step
  fixture.Step();
  const SequenceTimes a = (*first.result)->times, b = (*second.result)->times;
  EXPECT_EQ(a.submitted, start);
  EXPECT_EQ(a.admitted, start + absl::Milliseconds(2));
  EXPECT_EQ(a.encoded, start + absl::Milliseconds(3));
  EXPECT_EQ(a.finished, start + absl::Milliseconds(5));
  EXPECT_EQ(b.admitted, start + absl::Milliseconds(7));
}

TEST(BatcherTest, ReportCountsAddUp) {
  std::vector<Outcome> outcomes(3);  // outlives the house, which ends what is left
  BatcherFixture fixture({.rows = 3});
  fixture.Add(Say({5}, outcomes[0], /*beam_size=*/2));
  fixture.Add(Say({6, 7}, outcomes[1], /*beam_size=*/1));
  fixture.Add(Say({8}, outcomes[2], /*beam_size=*/1));
  const StepReport first = fixture.Step();
  EXPECT_EQ(first.admitted, 2);
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
  fixture.batcher.EndAll(absl::UnavailableError("closing"), fixture.now);
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

// However many wait, with deadlines or without, in one call or in many: a step looks at those that
// it takes out, and at the first one that finds no room.
TEST(BatcherTest, StepDoesNotInspectAllWaitingSequences) {
  constexpr int kWaiting = 20'000;
  for (const bool one_call : {false, true}) {
    BatcherFixture fixture({.rows = 4},
                           {.shed = {.interval = absl::Seconds(1), .max_wait = absl::Hours(2)}});
    std::vector<Outcome> outcomes(kWaiting);
    std::vector<std::shared_ptr<Cancellation>> cancellations;
    for (int i = 0; i < kWaiting; ++i) {
      auto sequence = Say({5, 6, 7}, outcomes[i]);
      sequence->caller = {.client = std::to_string(i % 100),
                          .call = static_cast<uint64_t>(one_call ? 1 + i % 100 : 1 + i)};
      sequence->deadline = fixture.now + absl::Hours(1) + absl::Seconds(i);
      sequence->cancelled = cancellations.emplace_back(std::make_shared<Cancellation>());
      fixture.Add(std::move(sequence));
    }
    for (int step = 0; step < 100; ++step) EXPECT_LE(fixture.Step().examined, 4 + 1);
    // Those that nobody wants any more are found wherever they are.
    for (int i = 1; i <= 10; ++i) cancellations[kWaiting - 37 * i]->Cancel();
    StepReport report = fixture.Step();
    EXPECT_EQ(report.cancelled, 10);
    EXPECT_LE(report.examined, 10 + 4 + 1);
    const int waiting = fixture.batcher.waiting();
    fixture.now += absl::Hours(1) + absl::Seconds(kWaiting / 2);
    report = fixture.Step();
    EXPECT_GT(report.expired, kWaiting / 3);
    // The others have waited for too long by now, but calls that have begun are not shed.
    if (!one_call) {
      EXPECT_GT(report.shed, kWaiting / 4);
    }
    EXPECT_LE(report.examined, report.expired + report.shed + 4 + 1);
    EXPECT_NEAR(fixture.batcher.waiting(), waiting - report.expired - report.shed - report.admitted,
                4)
        << "but for those that were running";
    fixture.batcher.EndAll(absl::CancelledError("over"), fixture.now);
    for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.done());
  }
}

}  // namespace
}  // namespace linnet::server
