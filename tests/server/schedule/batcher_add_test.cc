// Tests of the batcher: which waiting sequences are added, delayed and shed.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "server/base/errors.h"
#include "server/schedule/batcher.h"
#include "tests/server/schedule/batcher_fixture.h"
#include "tests/support/recording_sink.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

using test::Outcome;
using test::Say;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(BatcherAdmissionTest, NeverOvertakesTheFirstWaitingSequence) {
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

TEST(BatcherAdmissionTest, AdmitsANewClientBeforeALongQueue) {
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
      << "only those that were running when it came";
  fixture.StepsUntilIdle();
}

std::unique_ptr<Sequence> OfCall(uint64_t call, std::unique_ptr<Sequence> sequence) {
  sequence->caller.call = call;
  return sequence;
}

TEST(BatcherAdmissionTest, LimitsTheRowsOfOneCall) {
  std::vector<Outcome> lines(20);  // outlive the batcher, which ends the remaining sequences
  Outcome other;
  BatcherFixture fixture({.rows = 8}, {.max_rows_ratio = 0.75});
  for (Outcome& line : lines) fixture.Add(OfCall(7, Say({5, 6, 7}, line, /*beam_size=*/2)));
  EXPECT_EQ(fixture.Step().rows, 6);
  fixture.Add(OfCall(8, Say({9}, other, /*beam_size=*/2)));
  EXPECT_EQ(fixture.Step().rows, 8) << "the other rows are for other calls";
  fixture.Step();
  EXPECT_TRUE(other.done());
  for (int i = 0; !fixture.batcher.idle(); ++i) EXPECT_LE(fixture.Step().rows, 6);
}

TEST(BatcherAdmissionTest, AdmitsOneSequenceBeyondTheRowLimitOfACall) {
  Outcome outcome;
  BatcherFixture fixture({.rows = 8}, {.max_rows_ratio = 0.1});
  fixture.Add(OfCall(7, Say({5}, outcome, /*beam_size=*/4)));
  EXPECT_EQ(fixture.Step().rows, 4);
  fixture.StepsUntilIdle();
}

constexpr ShedOptions kShed = {.interval = absl::Milliseconds(20),
                               .max_wait = absl::Milliseconds(15)};

TEST(BatcherAdmissionTest, ShedsUnderOverloadWithRetryDelay) {
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
  EXPECT_EQ(fixture.Step().shed, 0) << "it has just arrived";
  EXPECT_FALSE(outcomes[0].done()) << "a running sequence is not shed";
  fixture.StepsUntilIdle();
}

TEST(BatcherAdmissionTest, NeverShedsAStartedCall) {
  std::vector<Outcome> outcomes(3);
  BatcherFixture fixture({.rows = 1}, {.shed = kShed});
  for (Outcome& outcome : outcomes)
    fixture.Add(OfCall(7, Say(std::vector<model::TokenId>(30, 5), outcome)));
  fixture.StepsUntilIdle();
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.result->ok());
}

TEST(BatcherAdmissionTest, ReportsAFullEngine) {
  BatcherFixture fixture({.rows = 4});
  std::vector<Outcome> outcomes(4);
  fixture.Add(Say({5, 6}, outcomes[0], /*beam_size=*/2));
  EXPECT_FALSE(fixture.Step().full);
  fixture.Add(Say({5, 6, 7}, outcomes[1], /*beam_size=*/2));
  StepReport report = fixture.Step();
  while (report.sequences < 2) report = fixture.Step();
  EXPECT_FALSE(report.full) << "no sequence waits";
  EXPECT_EQ(report.rows, 4);
  fixture.Add(Say({5}, outcomes[2], /*beam_size=*/2));
  report = fixture.Step();
  EXPECT_TRUE(report.full);
  EXPECT_EQ(report.rows, 4);
  fixture.StepsUntilIdle();
}

TEST(BatcherAdmissionTest, FullEncoderCacheDelaysAdmission) {
  BatcherFixture fixture({.encoder_cache_tokens = 8, .block_tokens = 4});
  Outcome a, b;
  fixture.Add(Say({5, 6, 7, 8}, a));  // five tokens: two blocks, the whole cache
  fixture.Add(Say({9}, b));
  EXPECT_EQ(fixture.Step().waiting, 1);
  fixture.StepsUntilIdle();
  EXPECT_THAT(fixture.engine.groups, ElementsAre(1, 1));
}

TEST(BatcherAdmissionTest, LimitsEncodedTokensBetweenSteps) {
  BatcherFixture fixture({}, {.max_encode_tokens = 12});
  std::vector<Outcome> outcomes(4);
  fixture.Add(Say({5, 6, 7}, outcomes[0]));            // 4 tokens
  fixture.Add(Say({5}, outcomes[1]));                  // 2, padded to 4
  fixture.Add(Say({5, 6, 7, 8, 9}, outcomes[2]));      // 6: 12
  fixture.Add(Say({5, 6, 7, 8, 9, 10}, outcomes[3]));  // 7: too many
  const StepReport first = fixture.Step();
  EXPECT_EQ(first.added, 3);
  EXPECT_EQ(first.encoded_tokens, 12);
  EXPECT_EQ(first.padded_encoded_tokens, 18);
  fixture.StepsUntilIdle();
  EXPECT_THAT(fixture.engine.groups, ElementsAre(3, 1));
}

TEST(BatcherAdmissionTest, EncodesUnequalLengthsApartForTheSameStep) {
  std::vector<Outcome> outcomes(4);  // outlive the batcher, which ends the remaining sequences
  BatcherFixture fixture({}, {.encode = {.encode_call_tokens = 3}});
  fixture.Add(Say(std::vector<model::TokenId>(30, 5), outcomes[0]));
  fixture.Add(Say({5}, outcomes[1]));
  fixture.Add(Say(std::vector<model::TokenId>(29, 6), outcomes[2]));
  fixture.Add(Say({5, 6}, outcomes[3]));
  const StepReport first = fixture.Step();
  EXPECT_THAT(fixture.engine.groups, ElementsAre(2, 2));
  EXPECT_EQ(first.encoder_calls, 2);
  EXPECT_EQ(first.encode, absl::Milliseconds(2)) << "the clock is read before and after each";
  EXPECT_EQ(first.encoded_tokens, 31 + 2 + 30 + 3);
  EXPECT_EQ(first.padded_encoded_tokens, 2 * 31 + 2 * 3);
  EXPECT_EQ(first.sequences, 4);
  fixture.StepsUntilIdle();
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.result->ok());
}

TEST(BatcherAdmissionTest, DelaysAdmissionUpToMaxWaitSteps) {
  std::vector<Outcome> outcomes(4);  // outlive the batcher, which ends the remaining sequences
  BatcherFixture fixture({}, {.encode = {.max_wait_steps = 3, .encode_call_steps = 100}});
  fixture.Add(Say(std::vector<model::TokenId>(20, 5), outcomes[0]));
  EXPECT_EQ(fixture.Step().added, 1) << "the engine is idle";
  fixture.Add(Say({6}, outcomes[1]));
  EXPECT_EQ(fixture.Step().added, 0);
  fixture.Add(Say({7}, outcomes[2]));
  EXPECT_EQ(fixture.Step().added, 0);
  EXPECT_EQ(fixture.Step().added, 0);
  fixture.Add(Say({8}, outcomes[3]));
  EXPECT_EQ(fixture.Step().added, 3);
  EXPECT_THAT(fixture.engine.groups, ElementsAre(1, 3));
}

TEST(BatcherAdmissionTest, EncodesNothingWhileTheDeviceStillEncodes) {
  std::vector<Outcome> outcomes(3);
  bool encoding = false;
  BatcherFixture fixture({.encoding = [&] { return encoding; }},
                         {.encode = {.max_wait_steps = 1, .encode_call_steps = 0}});
  fixture.Add(Say(std::vector<model::TokenId>(20, 5), outcomes[0]));
  EXPECT_EQ(fixture.Step().added, 1);
  encoding = true;
  for (int i : {1, 2}) {
    fixture.Add(Say({6}, outcomes[i]));
    EXPECT_EQ(fixture.Step().added, 0);
  }
  encoding = false;
  EXPECT_EQ(fixture.Step().added, 2);
  EXPECT_THAT(fixture.engine.groups, ElementsAre(1, 2));
  fixture.StepsUntilIdle();
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.result->ok());
}

TEST(BatcherAdmissionTest, StepsWithoutFreeRowsDoNotCountAsDelay) {
  std::vector<Outcome> outcomes(4);  // outlive the batcher, which ends the remaining sequences
  BatcherFixture fixture({.rows = 2}, {.encode = {.max_wait_steps = 2, .encode_call_steps = 100}});
  fixture.Add(Say({5}, outcomes[0]));
  fixture.Add(Say({5, 5, 5, 5, 5, 5, 5, 5, 5}, outcomes[1]));
  fixture.Step();
  fixture.Add(Say({6}, outcomes[2]));
  fixture.Add(Say({7}, outcomes[3]));
  EXPECT_EQ(fixture.Step().added, 0) << "no free row";
  EXPECT_EQ(fixture.Step().added, 0) << "a free row, first step of delay";
  EXPECT_EQ(fixture.Step().added, 0);
  EXPECT_EQ(fixture.Step().added, 1);
}

TEST(BatcherAdmissionTest, AdmitsASequenceLongerThanTheEncodeLimit) {
  BatcherFixture fixture({}, {.max_encode_tokens = 2});
  Outcome outcome;
  fixture.Add(Say({5, 6, 7, 8}, outcome));
  fixture.StepsUntilIdle();
  EXPECT_TRUE(outcome.result->ok());
}

TEST(BatcherAdmissionTest, LimitsRunningSequences) {
  BatcherFixture fixture({}, {.max_sequences = 2});
  std::vector<Outcome> outcomes(5);
  for (Outcome& outcome : outcomes) fixture.Add(Say({5, 6}, outcome));
  fixture.StepsUntilIdle();
  EXPECT_THAT(fixture.engine.sizes, ElementsAre(2, 2, 2, 2, 2, 2, 1, 1, 1));
}

TEST(BatcherAdmissionTest, FailsSequenceThatDoesNotFitAnEmptyEngine) {
  BatcherFixture fixture({.never_has_room = true});
  Outcome outcome;
  fixture.Add(Say({5}, outcome));
  fixture.Step();
  EXPECT_THAT(*outcome.result, StatusIs(absl::StatusCode::kInternal, HasSubstr("no room")));
  EXPECT_TRUE(fixture.batcher.idle());
}

// For any number of waiting sequences, in one call or in many, a step inspects those that it
// removes and the first one that does not fit.

TEST(BatcherAdmissionTest, StepDoesNotInspectAllWaitingSequences) {
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
    // Cancelled sequences are found at any position of the queue.
    for (int i = 1; i <= 10; ++i) cancellations[kWaiting - 37 * i]->Cancel();
    StepReport report = fixture.Step();
    EXPECT_EQ(report.cancelled, 10);
    EXPECT_LE(report.examined, 10 + 4 + 1);
    const int waiting = fixture.batcher.waiting();
    fixture.now += absl::Hours(1) + absl::Seconds(kWaiting / 2);
    report = fixture.Step();
    EXPECT_GT(report.expired, kWaiting / 3);
    // The others have waited for too long by now, but started calls are not shed.
    if (!one_call) {
      EXPECT_GT(report.shed, kWaiting / 4);
    }
    EXPECT_LE(report.examined, report.expired + report.shed + 4 + 1);
    EXPECT_NEAR(fixture.batcher.waiting(), waiting - report.expired - report.shed - report.added, 4)
        << "except for those that were running";
    fixture.batcher.EndAll(absl::CancelledError("over"), absl::CancelledError("over"));
    for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.done());
  }
}

// Counts the sources that the batcher has the engine read to find how many of them fit.
struct CountingEngine : test::EchoEngine {
  explicit CountingEngine(Options options) : EchoEngine(std::move(options)) {}
  bool HasRoom(std::span<const model::SequenceInput> inputs) const override {
    read += std::ssize(inputs);
    return EchoEngine::HasRoom(inputs);
  }
  mutable int64_t read = 0;
};

TEST(BatcherAdmissionTest, RoomForManyIsFoundWithoutReadingEachManyTimes) {
  constexpr int kMany = 512;
  for (const int fit : {kMany, kMany / 3}) {   // rows are the limit, and the encoder cache
    std::vector<Outcome> outcomes(2 * kMany);  // outlive the batcher
    CountingEngine engine({.rows = kMany, .encoder_cache_tokens = 2 * fit});
    Batcher batcher(engine, {.max_rows_ratio = 1});
    absl::Time now = absl::FromUnixSeconds(1'000'000);
    for (Outcome& outcome : outcomes) {
      auto sequence = Say({5}, outcome);  // with eos two blocks
      ASSERT_THAT(batcher.Add(sequence, now), IsOk());
    }
    const StepReport report = batcher.Step([&] { return now += absl::Milliseconds(1); });
    EXPECT_EQ(report.added, fit);
    EXPECT_TRUE(report.full);
    EXPECT_LE(report.examined, kMany + 1);
    EXPECT_LE(engine.read, 8 * kMany);
  }
}

}  // namespace
}  // namespace linnet::server
