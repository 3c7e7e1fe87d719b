#include "server/schedule/batcher.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "server/errors.h"
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
struct House {
  explicit House(EchoEngine::Options engine_options = {}, BatcherOptions options = {})
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

TEST(BatcherTest, NewcomerJoinsWhileAnotherIsUnderWay) {
  House house;
  Outcome first, second;
  house.Add(Say({5, 6, 7}, first));
  house.Step();
  house.Add(Say({9}, second));
  house.StepsUntilIdle();
  EXPECT_THAT(first.tokens(), ElementsAre(5, 6, 7, kEos));
  EXPECT_THAT(second.tokens(), ElementsAre(9, kEos));
  EXPECT_THAT(house.engine.sizes, ElementsAre(1, 2, 2, 1));
}

TEST(BatcherTest, AnEmptySourceIsOneStep) {
  House house;
  Outcome outcome;
  house.Add(Say({}, outcome));
  EXPECT_EQ(house.StepsUntilIdle(), 1);
  EXPECT_THAT(outcome.tokens(), ElementsAre(kEos));
}

TEST(BatcherTest, AStepWithNothingToDoDoesNotTouchTheEngine) {
  House house;
  const StepReport report = house.Step();
  EXPECT_FALSE(report.stepped);
  EXPECT_TRUE(house.engine.sizes.empty());
}

TEST(BatcherTest, RefusesWhatTheEngineCouldNeverDecodeAndLeavesItWithTheCaller) {
  House house({.rows = 4});
  Outcome outcome;
  auto sequence = Say({5}, outcome, /*beam_size=*/5);
  EXPECT_THAT(house.batcher.Add(sequence, house.now),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("4 rows")));
  EXPECT_NE(sequence, nullptr);
  EXPECT_FALSE(outcome.done());
}

TEST(BatcherTest, TheFirstInLineIsNeverOvertaken) {
  House house({.rows = 4});
  Outcome running, wide, narrow;
  house.Add(Say({5, 6, 7}, running, /*beam_size=*/2));
  house.Step();
  house.Add(Say({8}, wide, /*beam_size=*/3));
  house.Add(Say({9}, narrow, /*beam_size=*/1));
  house.Step();
  EXPECT_EQ(house.engine.sequences(), 1) << "the narrow one would fit, but it came later";
  house.StepsUntilIdle();
  EXPECT_THAT(house.engine.rows, ElementsAre(2, 2, 2, 2, 4, 4));
}

TEST(BatcherTest, ANewClientIsSeatedBeforeTheRestOfALongLine) {
  House house({.rows = 2});
  std::vector<Outcome> many(6);
  Outcome one;
  auto of = [](std::unique_ptr<Sequence> sequence, const char* client) {
    sequence->caller.client = client;
    return sequence;
  };
  for (Outcome& outcome : many) house.Add(of(Say({5, 6}, outcome), "many"));
  house.Step();
  house.Add(of(Say({7}, one), "one"));
  while (!one.done()) house.Step();
  EXPECT_EQ(std::count_if(many.begin(), many.end(), [](const auto& o) { return o.done(); }), 2)
      << "those that were seated when it came";
  house.StepsUntilIdle();
}

std::unique_ptr<Sequence> OfCall(uint64_t call, std::unique_ptr<Sequence> sequence) {
  sequence->caller.call = call;
  return sequence;
}

TEST(BatcherTest, OneCallDoesNotHoldMoreThanItsPartOfTheRows) {
  std::vector<Outcome> lines(20);  // outlive the house, which ends what is left
  Outcome other;
  House house({.rows = 8}, {.max_call_rows_ratio = 0.75});
  for (Outcome& line : lines) house.Add(OfCall(7, Say({5, 6, 7}, line, /*beam_size=*/2)));
  EXPECT_EQ(house.Step().rows, 6);
  house.Add(OfCall(8, Say({9}, other, /*beam_size=*/2)));
  EXPECT_EQ(house.Step().rows, 8) << "the rest is for others";
  house.Step();
  EXPECT_TRUE(other.done());
  for (int i = 0; !house.batcher.idle(); ++i) EXPECT_LE(house.Step().rows, 6);
}

TEST(BatcherTest, OneSequenceOfACallIsLetInHoweverManyRowsItTakes) {
  Outcome outcome;
  House house({.rows = 8}, {.max_call_rows_ratio = 0.1});
  house.Add(OfCall(7, Say({5}, outcome, /*beam_size=*/4)));
  EXPECT_EQ(house.Step().rows, 4);
  house.StepsUntilIdle();
}

constexpr ShedOptions kShed = {.interval = absl::Milliseconds(20),
                               .most_wait = absl::Milliseconds(15)};

TEST(BatcherTest, InAnOverloadWhoWaitedTooLongIsToldToRetry) {
  std::vector<Outcome> outcomes(3);
  House house({.rows = 1}, {.shed = kShed});
  house.Add(Say(std::vector<model::TokenId>(50, 5), outcomes[0]));
  house.Add(Say({6}, outcomes[1]));
  StepReport sum;
  for (int i = 0; i < 12; ++i) sum.shed += house.Step().shed;
  EXPECT_EQ(sum.shed, 1);
  EXPECT_THAT(*outcomes[1].result, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(ErrorReason(outcomes[1].result->status()), "WAITED_TOO_LONG");
  house.Add(Say({7}, outcomes[2]));
  EXPECT_EQ(house.Step().shed, 0) << "it has only come";
  EXPECT_FALSE(outcomes[0].done()) << "what has begun goes on";
  house.StepsUntilIdle();
}

TEST(BatcherTest, OfACallThatHasBegunNothingIsTurnedAway) {
  std::vector<Outcome> outcomes(3);
  House house({.rows = 1}, {.shed = kShed});
  for (Outcome& outcome : outcomes)
    house.Add(OfCall(7, Say(std::vector<model::TokenId>(30, 5), outcome)));
  house.StepsUntilIdle();
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.result->ok());
}

TEST(BatcherTest, TheReportSaysWhatTheFinishedHadCost) {
  House house;
  Outcome outcome;
  house.Add(Say({5, 6}, outcome, /*beam_size=*/2));
  StepReport last;
  while (!house.batcher.idle()) last = house.Step();
  EXPECT_EQ(last.finished_tokens, 3 + 100);
  EXPECT_EQ(last.finished_steps, 3);
  EXPECT_EQ(last.rows_limit, 64);
  EXPECT_EQ(last.ended, (*outcome.result)->times.finished);
}

TEST(BatcherTest, TheReportSaysWhatSitsInAFullEngine) {
  House house({.rows = 4});
  std::vector<Outcome> outcomes(4);
  house.Add(Say({5, 6}, outcomes[0], /*beam_size=*/2));
  EXPECT_FALSE(house.Step().full);
  house.Add(Say({5, 6, 7}, outcomes[1], /*beam_size=*/2));
  StepReport report = house.Step();
  while (report.sequences < 2) report = house.Step();
  EXPECT_FALSE(report.full) << "nobody waits";
  EXPECT_EQ(report.rows, 4);
  house.Add(Say({5}, outcomes[2], /*beam_size=*/2));
  report = house.Step();
  EXPECT_TRUE(report.full);
  EXPECT_EQ(report.rows, 4);
  house.StepsUntilIdle();
}

TEST(BatcherTest, MemoryHoldsBackWhatRowsWouldNot) {
  House house({.memory_tokens = 8, .block_tokens = 4});
  Outcome a, b;
  house.Add(Say({5, 6, 7, 8}, a));  // five tokens: two blocks, the whole memory
  house.Add(Say({9}, b));
  EXPECT_EQ(house.Step().waiting, 1);
  house.StepsUntilIdle();
  EXPECT_THAT(house.engine.groups, ElementsAre(1, 1));
}

TEST(BatcherTest, EncodesAtMostSoManyTokensBetweenTwoSteps) {
  House house({}, {.max_encode_tokens = 12});
  std::vector<Outcome> outcomes(4);
  house.Add(Say({5, 6, 7}, outcomes[0]));            // 4 tokens
  house.Add(Say({5}, outcomes[1]));                  // 2, padded to 4
  house.Add(Say({5, 6, 7, 8, 9}, outcomes[2]));      // 6: 12
  house.Add(Say({5, 6, 7, 8, 9, 10}, outcomes[3]));  // 7: too many
  const StepReport first = house.Step();
  EXPECT_EQ(first.seated, 3);
  EXPECT_EQ(first.encoded_tokens, 12);
  EXPECT_EQ(first.padded_encoded_tokens, 18);
  house.StepsUntilIdle();
  EXPECT_THAT(house.engine.groups, ElementsAre(3, 1));
}

TEST(BatcherTest, NewcomersOfUnequalLengthAreEncodedApartAndJoinTheSameStep) {
  std::vector<Outcome> outcomes(4);  // outlive the house, which ends what is left
  House house({}, {.admit = {.encode_call_tokens = 3}});
  house.Add(Say(std::vector<model::TokenId>(30, 5), outcomes[0]));
  house.Add(Say({5}, outcomes[1]));
  house.Add(Say(std::vector<model::TokenId>(29, 6), outcomes[2]));
  house.Add(Say({5, 6}, outcomes[3]));
  const StepReport first = house.Step();
  EXPECT_THAT(house.engine.groups, ElementsAre(2, 2));
  EXPECT_EQ(first.encoder_calls, 2);
  EXPECT_EQ(first.encode, absl::Milliseconds(2)) << "a look at the clock before and after each";
  EXPECT_EQ(first.encoded_tokens, 31 + 2 + 30 + 3);
  EXPECT_EQ(first.padded_encoded_tokens, 2 * 31 + 2 * 3);
  EXPECT_EQ(first.sequences, 4);
  house.StepsUntilIdle();
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.result->ok());
}

TEST(BatcherTest, AFailedEncoderCallEndsItsGroupAlone) {
  House house({.unencodable = 66}, {.admit = {.encode_call_tokens = 0}});
  Outcome good, bad;
  house.Add(Say({5, 6, 7}, good));
  house.Add(Say({66}, bad));
  const StepReport first = house.Step();
  EXPECT_EQ(first.seated, 1);
  EXPECT_EQ(first.failed, 1);
  house.StepsUntilIdle();
  EXPECT_EQ(bad.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(good.tokens(), ElementsAre(5, 6, 7, kEos));
}

TEST(BatcherTest, NewcomersWaitForOthersWhileManyAreUnderWayAndAtMostSoManySteps) {
  std::vector<Outcome> outcomes(4);  // outlive the house, which ends what is left
  House house({}, {.admit = {.max_wait_steps = 3, .encode_call_steps = 100}});
  house.Add(Say(std::vector<model::TokenId>(20, 5), outcomes[0]));
  EXPECT_EQ(house.Step().seated, 1) << "nobody is held up";
  house.Add(Say({6}, outcomes[1]));
  EXPECT_EQ(house.Step().seated, 0);
  house.Add(Say({7}, outcomes[2]));
  EXPECT_EQ(house.Step().seated, 0);
  EXPECT_EQ(house.Step().seated, 0);
  house.Add(Say({8}, outcomes[3]));
  EXPECT_EQ(house.Step().seated, 3);
  EXPECT_THAT(house.engine.groups, ElementsAre(1, 3));
}

TEST(BatcherTest, StepsWithoutAFreePlaceAreNoneOfWaitingForOthers) {
  std::vector<Outcome> outcomes(4);  // outlive the house, which ends what is left
  House house({.rows = 2}, {.admit = {.max_wait_steps = 2, .encode_call_steps = 100}});
  house.Add(Say({5}, outcomes[0]));
  house.Add(Say({5, 5, 5, 5, 5, 5, 5, 5, 5}, outcomes[1]));
  house.Step();
  house.Add(Say({6}, outcomes[2]));
  house.Add(Say({7}, outcomes[3]));
  EXPECT_EQ(house.Step().seated, 0) << "no place";
  EXPECT_EQ(house.Step().seated, 0) << "a place, a step to wait";
  EXPECT_EQ(house.Step().seated, 0);
  EXPECT_EQ(house.Step().seated, 1);
}

TEST(BatcherTest, OneSequenceIsLetInHoweverLongItIs) {
  House house({}, {.max_encode_tokens = 2});
  Outcome outcome;
  house.Add(Say({5, 6, 7, 8}, outcome));
  house.StepsUntilIdle();
  EXPECT_TRUE(outcome.result->ok());
}

TEST(BatcherTest, SeatsAtMostSoManySequences) {
  House house({}, {.max_sequences = 2});
  std::vector<Outcome> outcomes(5);
  for (Outcome& outcome : outcomes) house.Add(Say({5, 6}, outcome));
  house.StepsUntilIdle();
  EXPECT_THAT(house.engine.sizes, ElementsAre(2, 2, 2, 2, 2, 2, 1, 1, 1));
}

TEST(BatcherTest, ACancelFreesTheRowsWithinAStep) {
  House house({.rows = 2});
  Outcome gone, next;
  auto flag = std::make_shared<Cancellation>();
  auto sequence = Say({5, 6, 7, 8}, gone, /*beam_size=*/2);
  sequence->cancelled = flag;
  house.Add(std::move(sequence));
  house.Add(Say({9}, next, /*beam_size=*/2));
  house.Step();
  flag->Cancel();
  const StepReport report = house.Step();
  EXPECT_EQ(gone.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(report.cancelled, 1);
  EXPECT_EQ(report.seated, 1) << "the next one sits in the rows at once";
  house.StepsUntilIdle();
  EXPECT_THAT(next.tokens(), ElementsAre(9, kEos));
}

TEST(BatcherTest, ADeadlineEndsWhatIsSeatedAndWhatWaits) {
  House house({.rows = 1});
  Outcome seated, waiting;
  auto a = Say({5, 6, 7, 8}, seated);
  auto b = Say({5}, waiting);
  a->deadline = b->deadline = house.now + absl::Seconds(1);
  house.Add(std::move(a));
  house.Add(std::move(b));
  house.Step();
  house.now += absl::Seconds(1);
  EXPECT_EQ(house.Step().expired, 2);
  EXPECT_EQ(seated.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(waiting.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(house.engine.rows_in_use(), 0);
}

TEST(BatcherTest, AResultOnTheDeadlineIsAResult) {
  House house;
  Outcome outcome;
  auto sequence = Say({}, outcome);
  sequence->deadline =
      house.now + absl::Milliseconds(2);  // after the look that drops, before the step is over
  house.Add(std::move(sequence));
  house.Step();
  EXPECT_TRUE(outcome.result->ok());
}

TEST(BatcherTest, OneThatIsNotANumberFailsAlone) {
  House house({.not_a_number = 66});
  Outcome bad, good;
  house.Add(Say({5, 66}, bad));
  house.Add(Say({5, 6, 7}, good));
  house.StepsUntilIdle();
  EXPECT_THAT(*bad.result, StatusIs(absl::StatusCode::kInternal, HasSubstr("not a number")));
  EXPECT_THAT(good.tokens(), ElementsAre(5, 6, 7, kEos));
}

TEST(BatcherTest, AFailedStepEndsTheSeatedAndSparesTheWaiting) {
  House house({.rows = 1, .failing_step = 1});
  Outcome seated, waiting;
  house.Add(Say({5, 6}, seated));
  house.Add(Say({7}, waiting));
  EXPECT_EQ(house.Step().failed, 1);
  EXPECT_EQ(seated.code(), absl::StatusCode::kInternal);
  house.StepsUntilIdle();
  EXPECT_THAT(waiting.tokens(), ElementsAre(7, kEos));
}

TEST(BatcherTest, AFailedEncoderEndsItsGroupAndSparesTheOthers) {
  House house({.unencodable = 66});
  Outcome running, bad, later;
  house.Add(Say({5, 6, 7}, running));
  house.Step();
  house.Add(Say({66}, bad));
  const StepReport report = house.Step();
  EXPECT_EQ(report.failed, 1);
  EXPECT_EQ(report.seated, 0);
  house.Add(Say({8}, later));
  house.StepsUntilIdle();
  EXPECT_EQ(bad.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(running.tokens(), ElementsAre(5, 6, 7, kEos));
  EXPECT_THAT(later.tokens(), ElementsAre(8, kEos));
}

TEST(BatcherTest, AnEngineWithoutRoomForAnythingDoesNotHoldTheQueueForever) {
  House house({.never_has_room = true});
  Outcome outcome;
  house.Add(Say({5}, outcome));
  house.Step();
  EXPECT_THAT(*outcome.result, StatusIs(absl::StatusCode::kInternal, HasSubstr("no room")));
  EXPECT_TRUE(house.batcher.idle());
}

TEST(BatcherTest, TimesAreThoseOfTheDoors) {
  House house({.rows = 1});
  Outcome first, second;
  const absl::Time start = house.now;
  house.Add(Say({}, first));
  house.Add(Say({}, second));
  house.Step();  // looks: drop, before and after Seat, before and after Step
  house.Step();
  const SequenceTimes a = (*first.result)->times, b = (*second.result)->times;
  EXPECT_EQ(a.submitted, start);
  EXPECT_EQ(a.seated, start + absl::Milliseconds(2));
  EXPECT_EQ(a.encoded, start + absl::Milliseconds(3));
  EXPECT_EQ(a.finished, start + absl::Milliseconds(5));
  EXPECT_EQ(b.seated, start + absl::Milliseconds(7));
}

TEST(BatcherTest, TheReportAddsUp) {
  std::vector<Outcome> outcomes(3);  // outlives the house, which ends what is left
  House house({.rows = 3});
  house.Add(Say({5}, outcomes[0], /*beam_size=*/2));
  house.Add(Say({6, 7}, outcomes[1], /*beam_size=*/1));
  house.Add(Say({8}, outcomes[2], /*beam_size=*/1));
  const StepReport first = house.Step();
  EXPECT_EQ(first.seated, 2);
  EXPECT_EQ(first.sequences, 2);
  EXPECT_EQ(first.rows, 3);
  EXPECT_EQ(first.waiting, 1);
  EXPECT_EQ(first.remaining, 2);
  EXPECT_EQ(first.encode, absl::Milliseconds(1));
  EXPECT_EQ(first.decode, absl::Milliseconds(1));
  const StepReport second = house.Step();
  EXPECT_EQ(second.finished, 1);
  EXPECT_EQ(second.target_tokens, 2);
  EXPECT_EQ(second.remaining, 1);
}

TEST(BatcherTest, EndAllEndsTheWaitingAndTheSeatedOnce) {
  House house({.rows = 1});
  Outcome seated, waiting;
  house.Add(Say({5, 6}, seated));
  house.Add(Say({7}, waiting));
  house.Step();
  house.batcher.EndAll(absl::UnavailableError("closing"), house.now);
  EXPECT_EQ(seated.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(waiting.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(house.engine.rows_in_use(), 0);
  EXPECT_TRUE(house.batcher.idle());
}

TEST(BatcherTest, WhatIsLeftEndsWithTheBatcher) {
  Outcome outcome;
  {
    House house;
    house.Add(Say({5, 6}, outcome));
    house.Step();
  }
  EXPECT_EQ(outcome.code(), absl::StatusCode::kCancelled);
}

// However many wait, with deadlines or without, in one call or in many: a step looks at those that
// it takes out, and at the first one that finds no room.
TEST(BatcherTest, AStepDoesNotLookAtAllThatWait) {
  constexpr int kWaiting = 20'000;
  for (const bool one_call : {false, true}) {
    House house({.rows = 4}, {.shed = {.interval = absl::Seconds(1), .most_wait = absl::Hours(2)}});
    std::vector<Outcome> outcomes(kWaiting);
    std::vector<std::shared_ptr<Cancellation>> cancellations;
    for (int i = 0; i < kWaiting; ++i) {
      auto sequence = Say({5, 6, 7}, outcomes[i]);
      sequence->caller = {.client = std::to_string(i % 100),
                          .call = static_cast<uint64_t>(one_call ? 1 + i % 100 : 1 + i)};
      sequence->deadline = house.now + absl::Hours(1) + absl::Seconds(i);
      sequence->cancelled = cancellations.emplace_back(std::make_shared<Cancellation>());
      house.Add(std::move(sequence));
    }
    for (int step = 0; step < 100; ++step) EXPECT_LE(house.Step().examined, 4 + 1);
    // Those that nobody wants any more are found wherever they are.
    for (int i = 1; i <= 10; ++i) cancellations[kWaiting - 37 * i]->Cancel();
    StepReport report = house.Step();
    EXPECT_EQ(report.cancelled, 10);
    EXPECT_LE(report.examined, 10 + 4 + 1);
    const int waiting = house.batcher.waiting();
    house.now += absl::Hours(1) + absl::Seconds(kWaiting / 2);
    report = house.Step();
    EXPECT_GT(report.expired, kWaiting / 3);
    // The others have waited for too long by now, but calls that have begun are not shed.
    if (!one_call) {
      EXPECT_GT(report.shed, kWaiting / 4);
    }
    EXPECT_LE(report.examined, report.expired + report.shed + 4 + 1);
    EXPECT_NEAR(house.batcher.waiting(), waiting - report.expired - report.shed - report.seated, 4)
        << "but for those that were running";
    house.batcher.EndAll(absl::CancelledError("over"), house.now);
    for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.done());
  }
}

}  // namespace
}  // namespace linnet::server
