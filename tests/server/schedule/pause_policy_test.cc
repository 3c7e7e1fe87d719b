// Which sequences pause beside interactive ones.
#include "server/schedule/pause_policy.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/schedule/batcher_fixture.h"
#include "tests/support/recording_sink.h"

namespace linnet::server {
namespace {

using test::Outcome;
using test::Say;
using ::testing::ElementsAre;

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);

// The number of lower sequences of `rows` rows that a step decodes beside `higher` rows.
int Decoded(PausePolicy& policy, int higher, int rows, int wanted = 0) {
  policy.Choose(higher, wanted);
  int decoded = 0;
  while (decoded < 100 && policy.Decodes(rows)) ++decoded;
  return decoded;
}

// Knows steps of 1 ms and .1 ms a row.
PausePolicy Learned() {
  PausePolicy policy;
  for (const int rows : {4, 8, 16, 32, 64, 128})
    policy.RecordStep(rows, absl::Milliseconds(1 + 0.1 * rows), kNow);
  return policy;
}

TEST(PausePolicyTest, DecodesAllWithoutInteractiveWork) {
  PausePolicy policy = Learned();
  policy.Observe({.normal = true}, kNow);
  EXPECT_EQ(Decoded(policy, 8, 4), 100);
  EXPECT_TRUE(policy.leaves_rows());
  policy.Observe({}, kNow + 2 * PausePolicy::kRecently);
  EXPECT_FALSE(policy.leaves_rows());
}

TEST(PausePolicyTest, LowerWorkGetsAFifthOfTheTime) {
  PausePolicy policy = Learned();
  policy.Observe({.interactive_runs = true}, kNow);
  int decoded = 0;
  for (int step = 0; step < 1000; ++step) decoded += Decoded(policy, 4, 4);
  // A step takes 1.4 ms, and a sequence .4 ms of it.
  EXPECT_NEAR(decoded * 0.4, 1000 * 1.4 * PausePolicy::kShare, 1);
}

TEST(PausePolicyTest, DecodesAllWhereRowsCostNothing) {
  PausePolicy policy;
  for (const int rows : {4, 64, 128}) policy.RecordStep(rows, absl::Milliseconds(1), kNow);
  policy.Observe({.interactive_runs = true}, kNow);
  EXPECT_EQ(Decoded(policy, 4, 1), 100);
}

TEST(PausePolicyTest, DecodesAllWhereStepsTakeNoTime) {
  PausePolicy policy;
  policy.RecordStep(4, absl::ZeroDuration(), kNow);
  policy.Observe({.interactive_runs = true}, kNow);
  EXPECT_EQ(Decoded(policy, 4, 1), 100);
  EXPECT_TRUE(policy.Admits(4, 0, 0));
}

TEST(PausePolicyTest, FirstStepWithFewRowsShowsTheirCost) {
  PausePolicy policy;
  policy.RecordStep(128, absl::Milliseconds(13), kNow);
  policy.Observe({.interactive_runs = true}, kNow);
  EXPECT_EQ(Decoded(policy, 5, 4), 0);
  policy.RecordStep(5, absl::Milliseconds(1.4), kNow);
  EXPECT_GE(Decoded(policy, 5, 4), 1);
}

TEST(PausePolicyTest, StepsAreShortUntilTheNextInteractiveSequence) {
  PausePolicy policy = Learned();
  policy.RecordInteractive(absl::Milliseconds(24));
  policy.Observe({.interactive_waits = true}, kNow);
  policy.Observe({}, kNow + absl::Seconds(50));
  // 12 ms longer than the shortest step, and one sequence.
  EXPECT_NEAR(Decoded(policy, 0, 4), 31, 1);
  EXPECT_TRUE(policy.Admits(100, 100, 0));
  EXPECT_FALSE(policy.Admits(128, 128, 0));
  EXPECT_TRUE(policy.Admits(128, 8, 0)) << "the others are of a higher class";
  policy.Observe({}, kNow + absl::Seconds(70));
  EXPECT_EQ(Decoded(policy, 0, 4), 100);
  EXPECT_TRUE(policy.Admits(128, 128, 0));
}

TEST(PausePolicyTest, EncodesLittleUntilTheNextInteractiveSequence) {
  PausePolicy policy = Learned();
  policy.RecordEncoding(1000, absl::Milliseconds(100));
  policy.RecordInteractive(absl::Milliseconds(24));
  policy.Observe({.interactive_waits = true}, kNow);
  EXPECT_FALSE(policy.Admits(0, 0, 0)) << "one waits";
  policy.Observe({}, kNow);
  EXPECT_TRUE(policy.Admits(0, 0, 110));
  EXPECT_FALSE(policy.Admits(0, 0, 130));
  policy.Observe({.interactive_runs = true}, kNow);
  Decoded(policy, 4, 4);
  EXPECT_FALSE(policy.Admits(0, 0, 0)) << "all the time is given away";
  policy.Choose(4, 0);
  EXPECT_TRUE(policy.Admits(4, 0, 0));
  policy.Added(50);
  EXPECT_FALSE(policy.Admits(4, 0, 0));
}

TEST(PausePolicyTest, OldestSequencesMakeRoom) {
  PausePolicy policy = Learned();
  policy.Observe({.interactive_waits = true}, kNow);
  EXPECT_EQ(Decoded(policy, 0, 4, /*wanted=*/5), 2);
}

std::unique_ptr<Sequence> Of(Priority priority, std::unique_ptr<Sequence> sequence) {
  sequence->caller.priority = priority;
  sequence->caller.client = std::string(PriorityName(priority));
  return sequence;
}

// In the fixture every step takes 1 ms, whatever its rows; here a row takes it.
StepReport StepOfItsRows(BatcherFixture& fixture) {
  size_t steps = fixture.engine.rows.size();
  return fixture.batcher.Step([&] {
    fixture.now += absl::Milliseconds(1);
    if (fixture.engine.rows.size() > steps) {  // the first reading behind the engine's step
      ++steps;
      fixture.now += absl::Milliseconds(fixture.engine.rows.back());
    }
    return fixture.now;
  });
}

TEST(BatcherPauseTest, BatchSequencesPauseAndGoOn) {
  std::vector<Outcome> batch(8);
  Outcome reader;
  BatcherFixture fixture({.rows = 64}, {.encode = {.encode_call_steps = 0}});
  for (size_t i = 0; i < batch.size(); ++i) {
    fixture.Add(Of(Priority::kBatch,
                   Say(std::vector<model::TokenId>(20, 5 + static_cast<int>(i)), batch[i], 4)));
  }
  for (int i = 0; i < 5; ++i) StepOfItsRows(fixture);
  EXPECT_EQ(fixture.engine.rows.back(), 32);
  fixture.Add(Of(Priority::kInteractive, Say({7, 8, 9, 10, 11, 12}, reader, 4)));
  StepReport report;
  int steps = 0, decoded = 0;
  for (; !reader.done(); ++steps) {
    report = StepOfItsRows(fixture);
    decoded += report.rows - 4;
    EXPECT_EQ(report.rows, fixture.engine.rows.back());
    EXPECT_EQ(report.running, reader.done() ? 8 : 9);
  }
  EXPECT_EQ(steps, 7);
  EXPECT_LE(decoded, 2 * 4) << "of the 7 * 32 rows of batch work";
  while (!fixture.batcher.idle()) {
    report = StepOfItsRows(fixture);
    // A sequence takes 21 steps, without those in which it was paused.
    EXPECT_EQ(report.finished_steps, 21 * report.finished);
  }
  for (const Outcome& each : batch) EXPECT_TRUE(each.result->ok());
}

TEST(BatcherPauseTest, NormalSequencesPauseLessThanBatchSequences) {
  std::vector<Outcome> batch(4), normal(4);
  Outcome reader;
  BatcherFixture fixture({.rows = 64}, {.encode = {.encode_call_steps = 0}});
  for (size_t i = 0; i < batch.size(); ++i) {
    const std::vector<model::TokenId> words(12, 5 + static_cast<int>(i));
    fixture.Add(Of(Priority::kBatch, Say(words, batch[i], 4)));
    fixture.Add(Of(Priority::kNormal, Say(words, normal[i], 4)));
  }
  for (int i = 0; i < 5; ++i) StepOfItsRows(fixture);
  EXPECT_EQ(fixture.engine.rows.back(), 32);
  fixture.Add(Of(Priority::kInteractive, Say(std::vector<model::TokenId>(40, 9), reader, 4)));
  int decoded = 0;
  while (!reader.done()) decoded += StepOfItsRows(fixture).rows - 4;
  EXPECT_TRUE(normal.front().done()) << "the oldest";
  // It takes 41 steps of 5 ms alone, and a row 1 ms.
  EXPECT_LE(decoded, 41 * 5 * PausePolicy::kShare + 4);
  for (const Outcome& each : batch) EXPECT_FALSE(each.done());
  fixture.StepsUntilIdle();
}

TEST(BatcherPauseTest, RunThatAnInteractiveSequenceJoinsGoesOn) {
  Outcome batch, other, reader;
  BatcherFixture fixture({.rows = 64});
  const auto with_key = [](std::unique_ptr<Sequence> sequence) {
    sequence->key = "same";
    return sequence;
  };
  const std::vector<model::TokenId> words(20, 5);
  fixture.Add(Of(Priority::kBatch, Say(std::vector<model::TokenId>(20, 6), other, 4)));
  fixture.Add(Of(Priority::kBatch, with_key(Say(words, batch, 4))));
  for (int i = 0; i < 3; ++i) StepOfItsRows(fixture);
  fixture.Add(Of(Priority::kInteractive, with_key(Say(words, reader, 4))));
  int steps = 3;
  for (; !reader.done(); ++steps) StepOfItsRows(fixture);
  EXPECT_EQ(steps, 21);
  EXPECT_TRUE(batch.done());
  EXPECT_FALSE(other.done()) << "it was paused";
  fixture.StepsUntilIdle();
}

TEST(BatcherPauseTest, ClientLeavesAQuarterOfTheRowsWhileOthersWait) {
  std::vector<Outcome> greedy(20), modest(3);
  BatcherFixture fixture({.rows = 8}, {.encode = {.encode_call_steps = 0}});
  const auto of = [](const char* client, std::unique_ptr<Sequence> sequence) {
    sequence->caller.client = client;
    return sequence;
  };
  for (Outcome& each : greedy) fixture.Add(of("greedy", Say({5, 6, 7, 8, 9}, each)));
  EXPECT_EQ(fixture.Step().rows, 8) << "nobody else waits";
  for (Outcome& each : modest) fixture.Add(of("modest", Say({5, 6, 7}, each, 2)));
  while (!modest.back().done()) {
    fixture.Step();
    const BatchSnapshot snapshot = fixture.batcher.Snapshot(100);
    int rows = 0;
    bool waits = false;
    for (const SequenceSnapshot& each : snapshot.sequences) {
      if (each.running && each.caller.client == "greedy") rows += each.rows;
      waits |= !each.running && each.caller.client == "modest";
    }
    if (fixture.engine.rows.size() > 6 && waits) {
      EXPECT_LE(rows, 6);
    }
  }
  fixture.StepsUntilIdle();
}

TEST(BatcherPauseTest, CallerWithoutRowsIsNotShedBeforeOneWithTooMany) {
  constexpr ShedOptions kShed = {.interval = absl::Milliseconds(20),
                                 .max_wait = absl::Milliseconds(15)};
  std::vector<Outcome> greedy(10);
  Outcome modest;
  BatcherFixture fixture({.rows = 8}, {.shed = kShed});
  const auto of = [](const char* client, std::unique_ptr<Sequence> sequence) {
    sequence->caller.client = client;
    return sequence;
  };
  const std::vector<model::TokenId> words(60, 5);
  for (Outcome& each : greedy) fixture.Add(of("greedy", Say(words, each, 2)));
  fixture.Step();
  fixture.Add(of("modest", Say({5}, modest, 2)));
  int shed = 0;
  for (int i = 0; i < 30; ++i) shed += fixture.Step().shed;
  EXPECT_EQ(shed, 6) << "those that wait of the client that holds all rows";
  EXPECT_FALSE(modest.done());
  while (!modest.done()) fixture.Step();
  EXPECT_TRUE(modest.result->ok());
  fixture.StepsUntilIdle();
}

}  // namespace
}  // namespace linnet::server
