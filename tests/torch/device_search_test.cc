// An engine that searches on the device gives the results of one that searches on the host, in any
// batch. On the CPU bit for bit; LINNET_TEST_DEVICE=cuda runs it on a GPU, as tests/gpu.sh does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "model/ops/search/beam_params.h"
#include "model/torch/decoding/device_decoder.h"
#include "model/torch/torch_engine.h"
#include "tests/support/status_matchers.h"
#include "tests/torch/decoding.h"
#include "tests/torch/tiny_model.h"

namespace linnet::model {
namespace {

using ::linnet::IsOk;
using ::linnet::StatusIs;
using ::linnet::model::testing::Answer;
using ::linnet::model::testing::AnySequence;
using ::linnet::model::testing::Decode;
using ::linnet::model::testing::DecodeInBatches;
using ::linnet::model::testing::MakeEngine;
using ::linnet::model::testing::SameAnswers;
using ::linnet::model::testing::SmallEngine;
using ::linnet::model::testing::TestDevice;
using ::linnet::model::testing::TinyBundle;
using ::linnet::model::testing::TinyModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DeviceSearchTest, ReportsSearchPlace) {
  const bool cpu = TestDevice() == Device::kCpu;
  EXPECT_EQ(MakeEngine(SearchPlace::kHost)->info().search, "host");
  EXPECT_THAT(MakeEngine(SearchPlace::kAuto)->info().search, HasSubstr(cpu ? "host" : "device"));
  EXPECT_THAT(MakeEngine(SearchPlace::kDevice)->info().search,
              HasSubstr(cpu ? "device, no graphs" : "device, 16 graphs"));
}

// A manifest may allow targets that are longer than a device searches; the model is served anyway.
TEST(DeviceSearchTest, HostSearchesForTargetsThatAreTooLong) {
  Bundle bundle = TinyBundle();
  bundle.manifest.mutable_limits()->set_max_target_tokens(ops::kMaxHistory);
  TorchEngineOptions options = SmallEngine(SearchPlace::kAuto);
  const auto engine = MakeTorchEngine(bundle, options);
  ASSERT_THAT(engine, IsOk());
  EXPECT_THAT((*engine)->info().search, HasSubstr("host"));
  options.search = SearchPlace::kDevice;
  EXPECT_THAT(MakeTorchEngine(bundle, options),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("targets of 8192 tokens are longer than a device searches")));
}

TEST(DeviceSearchTest, EqualsHostSearch) {
  const auto host = MakeEngine(SearchPlace::kHost), device = MakeEngine(SearchPlace::kDevice);
  for (SequenceId id = 1; id <= 150; ++id) {
    const SequenceInput input = AnySequence(id);
    Answer expected = Decode(*host, input), got = Decode(*device, input);
    ASSERT_TRUE(SameAnswers(got.hypotheses, expected.hypotheses)) << id;
    // On the CPU the host takes all known tokens in one step.
    const size_t known = input.target.has_value() ? input.target->size() : input.prefix.size();
    for (auto* stable : {&expected.stable, &got.stable})
      std::erase_if(*stable, [&](const auto& tokens) { return tokens.size() < known; });
    ASSERT_EQ(got.stable, expected.stable) << id;
  }
}

TEST(DeviceSearchTest, ResultsDoNotDependOnBatch) {
  const auto host = MakeEngine(SearchPlace::kHost), device = MakeEngine(SearchPlace::kDevice);
  std::mt19937 random(3);
  constexpr SequenceId kMany = 250;
  const auto results = DecodeInBatches(*device, kMany, random);
  EXPECT_EQ(device->rows_in_use(), 0);
  EXPECT_GT(std::ssize(results), kMany / 2);
  for (const auto& [id, hypotheses] : results) {
    ASSERT_TRUE(SameAnswers(hypotheses, Decode(*host, AnySequence(id)).hypotheses)) << id;
  }
}

TEST(DeviceSearchTest, NgramLongerThanAnyTargetRepeatsNothing) {
  const auto device = MakeEngine(SearchPlace::kDevice);
  SequenceInput input = AnySequence(8);
  input.options.no_repeat_ngram_size = 0;
  const Answer expected = Decode(*device, input);
  for (int size : {1 << 20, std::numeric_limits<int>::max()}) {
    input.options.no_repeat_ngram_size = size;
    EXPECT_TRUE(SameAnswers(Decode(*device, input).hypotheses, expected.hypotheses)) << size;
  }
}

// A sequence with the same id may be added in the same rows right after the first one was released.
TEST(DeviceSearchTest, InFlightStepDoesNotAffectLaterSequences) {
  const auto host = MakeEngine(SearchPlace::kHost), device = MakeEngine(SearchPlace::kDevice);
  SequenceInput first = AnySequence(4), second = AnySequence(8);
  for (SequenceInput* input : {&first, &second}) {
    input->id = 1;
    input->target.reset();
    input->options.seed.reset();
    input->options.max_target_tokens = 12;
  }
  for (int steps = 1; steps < 6; ++steps) {
    ASSERT_THAT(device->Add({&first, 1}), IsOk());
    for (int i = 0; i < steps; ++i) ASSERT_THAT(device->Step(), IsOk());
    device->Release(1);
    ASSERT_TRUE(SameAnswers(Decode(*device, second).hypotheses, Decode(*host, second).hypotheses));
  }
}

TEST(DeviceSearchTest, ReportsEventsOneStepLate) {
  const auto device = MakeEngine(SearchPlace::kDevice);
  SequenceInput input;
  input.id = 1;
  input.source = {5, 2};
  input.options = {.beam_size = 3, .min_target_tokens = 4, .max_target_tokens = 4};
  ASSERT_THAT(device->Add({&input, 1}), IsOk());
  std::vector<int> counts;
  while (device->sequences() > 0) {
    const auto events = device->Step();
    ASSERT_THAT(events, IsOk());
    counts.push_back(events->front().target_tokens);
  }
  EXPECT_THAT(counts, ElementsAre(0, 1, 2, 3, 4, 5)) << "and no step is launched for nothing";
  EXPECT_FALSE(device->encoding());
}

// Next to six times as many rows on the device, the host steps in every sixth cycle.
TEST(DeviceSearchTest, HostStepsAsOftenAsItsShareOfRows) {
  const auto device = MakeEngine(SearchPlace::kDevice);
  std::vector<SequenceInput> inputs(4);
  std::vector<Answer> alone;
  for (int i = 0; i < 4; ++i) {
    const bool sampled = i == 0;
    const int tokens = sampled ? 8 : 19;
    inputs[i].id = i + 1;
    inputs[i].source = {5, 7 + i, 2};
    SearchOptions& options = inputs[i].options;
    options.beam_size = sampled ? 2 : 4;
    options.min_target_tokens = options.max_target_tokens = tokens;
    if (sampled) options.seed = 3;
    alone.push_back(Decode(*device, inputs[i]));
  }
  ASSERT_THAT(device->Add(inputs), IsOk());
  for (int cycle = 1; device->sequences() > 0; ++cycle) {
    const auto events = device->Step();
    ASSERT_THAT(events, IsOk());
    for (const SequenceEvent& event : *events) {
      // The record of the device's last step comes one cycle later.
      const int expected = event.id > 1 ? cycle - 1 : cycle <= 20 ? cycle / 6 : 3 + cycle - 20;
      EXPECT_EQ(event.target_tokens, expected) << event.id << " in cycle " << cycle;
      if (!event.finished) continue;
      EXPECT_TRUE(SameAnswers(event.hypotheses, alone[event.id - 1].hypotheses)) << event.id;
    }
  }
}

TEST(DeviceSearchTest, RowOfNaNFailsOnlyItsSequence) {
  const auto host = MakeEngine(SearchPlace::kHost), device = MakeEngine(SearchPlace::kDevice);
  SequenceInput bad;
  bad.id = 1;
  bad.source = {5, TinyModel::kMarked, 2};
  SequenceInput good = AnySequence(8);
  good.id = 2;
  ASSERT_THAT(device->Add(std::vector{bad, good}), IsOk());
  std::map<SequenceId, SequenceEvent> last;
  while (device->sequences() > 0) {
    auto events = device->Step();
    ASSERT_THAT(events, IsOk());
    for (SequenceEvent& event : *events) {
      if (event.finished) last[event.id] = std::move(event);
    }
  }
  EXPECT_THAT(last[1].status, StatusIs(absl::StatusCode::kInternal,
                                       HasSubstr("no probabilities at target token 0")));
  EXPECT_THAT(last[2].status, IsOk());
  EXPECT_TRUE(SameAnswers(last[2].hypotheses, Decode(*host, good).hypotheses));
}

TEST(DeviceSearchTest, FailedStepLosesOnlyRunningSequences) {
  if (TestDevice() != Device::kCpu) GTEST_SKIP() << "only the tiny model of the CPU throws";
  const auto host = MakeEngine(SearchPlace::kHost), device = MakeEngine(SearchPlace::kDevice);
  SequenceInput bad = AnySequence(8);
  bad.id = 1;
  bad.prefix = {7, TinyModel::kThrower};
  bad.options.max_target_tokens = 9;
  ASSERT_THAT(device->Add({&bad, 1}), IsOk());
  absl::Status status;
  while (device->sequences() > 0) status = device->Step().status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr("the thrower")));
  EXPECT_EQ(device->rows_in_use(), 0);
  const SequenceInput good = AnySequence(9);
  EXPECT_TRUE(SameAnswers(Decode(*device, good).hypotheses, Decode(*host, good).hypotheses));
}

TEST(DeviceSearchTest, StepSizesPadAtMostAQuarter) {
  EXPECT_THAT(StepSizes(1), ElementsAre(1));
  EXPECT_THAT(StepSizes(2), ElementsAre(2));
  EXPECT_THAT(StepSizes(7), ElementsAre(2, 3, 4, 5, 6, 7)) << "never a product with one row";
  EXPECT_THAT(StepSizes(40), ElementsAre(2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40));
  for (int max : {1, 2, 9, 160, 2560, 3001}) {
    const std::vector<int> sizes = StepSizes(max);
    EXPECT_EQ(sizes.back(), max);
    for (size_t i = 1; i < sizes.size(); ++i) {
      EXPECT_GT(sizes[i], sizes[i - 1]);
      // The smallest number of rows with this size fills at least four fifths of it.
      EXPECT_GE(5 * (sizes[i - 1] + 1), 4 * sizes[i]);
    }
  }
}

TEST(DeviceSearchTest, ParsesSearchPlaces) {
  EXPECT_EQ(*ParseSearchPlace("auto"), SearchPlace::kAuto);
  EXPECT_EQ(*ParseSearchPlace("host"), SearchPlace::kHost);
  EXPECT_EQ(*ParseSearchPlace("device"), SearchPlace::kDevice);
  EXPECT_THAT(ParseSearchPlace("gpu"), StatusIs(absl::StatusCode::kInvalidArgument,
                                                HasSubstr("there are auto, host and device")));
}

}  // namespace
}  // namespace linnet::model
