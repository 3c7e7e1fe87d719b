// The encoder of an engine that searches on the device has a thread of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "model/torch/encoder/encoder_times.h"
#include "model/torch/module/job_thread.h"
#include "model/torch/torch_engine.h"
#include "tests/support/status_matchers.h"
#include "tests/torch/decoding.h"
#include "tests/torch/tiny_model.h"

namespace linnet::model {
namespace {

using ::linnet::IsOk;
using ::linnet::StatusIs;
using ::linnet::model::testing::Decode;
using ::linnet::model::testing::MakeEngine;
using ::linnet::model::testing::SameAnswers;
using ::linnet::model::testing::SmallEngine;
using ::linnet::model::testing::TinyModel;
using ::linnet::model::testing::WaitingEncoderBundle;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

SequenceInput LongSequence(SequenceId id, std::vector<TokenId> source) {
  SequenceInput input;
  input.id = id;
  input.source = std::move(source);
  input.options = {.beam_size = 2, .min_target_tokens = 12, .max_target_tokens = 12};
  return input;
}

TEST(EncoderThreadTest, RunningSequencesStepWhileASourceIsEncoded) {
  // With the encoder on the engine's thread no step could be made before it ends, and it fails.
  auto engine = MakeTorchEngine(WaitingEncoderBundle(), SmallEngine(SearchPlace::kDevice));
  ASSERT_THAT(engine, IsOk());
  const SequenceInput running = LongSequence(1, {5, 6, 2});
  const SequenceInput slow = LongSequence(2, {5, TinyModel::kStopper, 2});
  ASSERT_THAT((*engine)->Add({&running, 1}), IsOk());
  ASSERT_THAT((*engine)->Step(), IsOk());
  ASSERT_THAT((*engine)->Add({&slow, 1}), IsOk());
  std::vector<int> tokens;
  for (int i = 0; i < 3; ++i) {
    const auto events = (*engine)->Step();
    ASSERT_THAT(events, IsOk());
    ASSERT_EQ(events->size(), 2);
    tokens.push_back(events->front().target_tokens);
    EXPECT_EQ(events->back().target_tokens, 0);
  }
  EXPECT_THAT(tokens, ElementsAre(1, 2, 3));
  int finished = 0;
  while ((*engine)->sequences() > 0) {
    const auto events = (*engine)->Step();
    ASSERT_THAT(events, IsOk());
    for (const SequenceEvent& event : *events) {
      EXPECT_THAT(event.status, IsOk());
      finished += event.finished;
    }
  }
  EXPECT_EQ(finished, 2);
}

TEST(EncoderThreadTest, FailedEncodingEndsOnlyItsSequences) {
  const auto host = MakeEngine(SearchPlace::kHost), device = MakeEngine(SearchPlace::kDevice);
  const SequenceInput good = LongSequence(1, {5, 6, 2});
  SequenceInput sampled = LongSequence(3, {TinyModel::kStopper, 2});
  sampled.options.seed = 1;  // searched on the host
  ASSERT_THAT(device->Add({&good, 1}), IsOk());
  ASSERT_THAT(device->Add(std::vector{LongSequence(2, {TinyModel::kStopper, 2}), sampled}), IsOk());
  std::map<SequenceId, SequenceEvent> last;
  while (device->sequences() > 0) {
    auto events = device->Step();
    ASSERT_THAT(events, IsOk());
    for (SequenceEvent& event : *events) {
      if (event.finished) last[event.id] = std::move(event);
    }
  }
  for (SequenceId id : {2, 3}) {
    EXPECT_THAT(last[id].status,
                StatusIs(absl::StatusCode::kInternal, HasSubstr("encoding failed: ")));
  }
  EXPECT_THAT(last[1].status, IsOk());
  EXPECT_TRUE(SameAnswers(last[1].hypotheses, Decode(*host, good).hypotheses));
  EXPECT_EQ(device->rows_in_use(), 0);
  const SequenceInput next = LongSequence(4, {9, 8, 7, 2});
  EXPECT_TRUE(SameAnswers(Decode(*device, next).hypotheses, Decode(*host, next).hypotheses))
      << "in the blocks of the failed ones";
}

TEST(EncoderThreadTest, EngineMayEndWhileASourceIsEncoded) {
  auto engine = MakeEngine(SearchPlace::kDevice);
  for (SequenceId id = 1; id <= 8; ++id) {
    const SequenceInput input = LongSequence(id, {5, 6, 7, 2});
    ASSERT_THAT(engine->Add({&input, 1}), IsOk());
  }
  engine = nullptr;
}

TEST(EncoderTimesTest, SplitsACallIntoItsFixedCostAndItsTokens) {
  // 2 ms and 10 us per token; a step takes 4 ms.
  const EncoderCost cost = FitEncoderCost({.few_tokens = 10,
                                           .many_tokens = 110,
                                           .few_seconds = 2.1e-3,
                                           .many_seconds = 3.1e-3,
                                           .step_seconds = 4e-3});
  EXPECT_NEAR(cost.call_steps, 0.5, 1e-6);
  EXPECT_EQ(cost.call_tokens, 200);
}

TEST(EncoderTimesTest, BoundsTheCostOfCallsWithoutASlope) {
  EncoderTimes times = {.few_tokens = 1,
                        .many_tokens = 256,
                        .few_seconds = 1e-3,
                        .many_seconds = 1e-3,
                        .step_seconds = 1e-6};
  EXPECT_EQ(FitEncoderCost(times).call_tokens, kMaxCallTokens) << "all sources in one call";
  EXPECT_EQ(FitEncoderCost(times).call_steps, kMaxCallSteps);
  times.many_seconds = 1e-4;  // noise
  EXPECT_EQ(FitEncoderCost(times).call_tokens, kMaxCallTokens);
  times = {
      .few_tokens = 1, .many_tokens = 2, .few_seconds = 1, .many_seconds = 3, .step_seconds = 1};
  EXPECT_EQ(FitEncoderCost(times).call_steps, 0) << "a call without tokens costs nothing";
  EXPECT_EQ(FitEncoderCost(times).call_tokens, 0);
}

TEST(EncoderTimesTest, EngineMeasuresWhereTheDeviceSearches) {
  EXPECT_FALSE(MakeEngine(SearchPlace::kHost)->info().encoder_cost.has_value());
  const auto cost = MakeEngine(SearchPlace::kDevice)->info().encoder_cost;
  ASSERT_TRUE(cost.has_value());
  EXPECT_GE(cost->call_steps, 0);
  EXPECT_LE(cost->call_steps, kMaxCallSteps);
  EXPECT_GE(cost->call_tokens, 0);
  EXPECT_LE(cost->call_tokens, kMaxCallTokens);
}

TEST(JobThreadTest, RunsJobsInOrder) {
  std::vector<int> ran;
  std::promise<void> all;
  JobThread thread;
  for (int i = 0; i < 5; ++i) thread.Add([&ran, i] { ran.push_back(i); });
  thread.Add([&all] { all.set_value(); });
  all.get_future().wait();
  EXPECT_THAT(ran, ElementsAre(0, 1, 2, 3, 4));
}

TEST(JobThreadTest, DestructorWaitsForTheRunningJob) {
  std::promise<void> began;
  bool ended = false;
  {
    JobThread thread;
    thread.Add([&] {
      began.set_value();
      std::this_thread::yield();
      ended = true;
    });
    began.get_future().wait();
  }
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace linnet::model
