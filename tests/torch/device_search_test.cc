// An engine whose searches run beside the model, here on the CPU: what it says is what the engine
// says whose host searches, bit for bit, whoever joins, leaves and shares its steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "model/torch/device_steps.h"
#include "model/torch/torch_engine.h"
#include "tests/support/status_matchers.h"
#include "tests/torch/tiny_model.h"

namespace linnet::model {
namespace {

using ::linnet::IsOk;
using ::linnet::StatusIs;
using ::linnet::model::testing::TinyBundle;
using ::linnet::model::testing::TinyModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TorchEngineOptions Options(SearchPlace search) {
  return {.compute = ComputeType::kFloat32,
          .threads = 1,
          .rows = 40,
          .memory_tokens = 320,
          .search = search};
}

std::unique_ptr<Engine> MakeEngine(SearchPlace search) {
  auto engine = MakeTorchEngine(TinyBundle(), Options(search));
  if (!engine.ok()) {
    ADD_FAILURE() << engine.status();
    return nullptr;
  }
  return *std::move(engine);
}

// Any search, with some that only the host can do.
SequenceInput AnySequence(SequenceId id) {
  std::mt19937 random(static_cast<uint32_t>(id));
  SequenceInput input;
  input.id = id;
  for (int i = random() % 39; i > 0; --i) input.source.push_back(4 + random() % 41);
  input.source.push_back(2);
  SearchOptions& options = input.options;
  options.beam_size = 1 + static_cast<int>(random() % 6);
  options.n_best = options.beam_size;
  options.max_target_tokens = static_cast<int>(random() % 20);
  options.min_target_tokens = static_cast<int>(random() % (options.max_target_tokens + 1)) / 3;
  if (random() % 3 == 0) options.no_repeat_ngram_size = 1 + static_cast<int>(random() % 3);
  if (random() % 3 == 0) options.unknown_penalty = 0.5f;
  if (random() % 3 == 0) options.temperature = 1.7f;
  if (random() % 4 == 0) options.length_penalty = 0;
  input.report_stable = random() % 2 == 0;
  switch (random() % 6) {
    case 0:
      input.prefix.assign(std::min<int>(2, options.max_target_tokens), 7);
      break;
    case 1:
      input.target = {7, 9, static_cast<TokenId>(4 + random() % 40), 2};
      break;
    case 2:
      options.seed = random();
      break;
    case 3:
      if (random() % 4 == 0) options.beam_size = options.n_best = ops::kMostBeam + 2;
      break;
    default:
      break;
  }
  return input;
}

struct Answer {
  std::vector<Hypothesis> hypotheses;
  std::vector<std::vector<TokenId>> stable;  // where it grew
};

// Decodes alone.
Answer Decode(Engine& engine, const SequenceInput& input) {
  Answer answer;
  EXPECT_THAT(engine.Seat({&input, 1}), IsOk());
  while (engine.sequences() > 0) {
    auto events = engine.Step();
    EXPECT_THAT(events, IsOk());
    if (!events.ok()) return answer;
    for (SequenceEvent& event : *events) {
      EXPECT_THAT(event.status, IsOk());
      if (event.finished) answer.hypotheses = event.hypotheses;
      if (!event.stable.empty() &&
          (answer.stable.empty() || answer.stable.back() != event.stable)) {
        answer.stable.push_back(event.stable);
      }
    }
  }
  return answer;
}

bool SameBits(const std::vector<Hypothesis>& a, const std::vector<Hypothesis>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Hypothesis& one, const Hypothesis& other) {
                      return one.tokens == other.tokens && one.token_scores == other.token_scores &&
                             one.score == other.score && one.ended_by_limit == other.ended_by_limit;
                    });
}

TEST(DeviceSearchTest, SaysWhereItSearches) {
  EXPECT_EQ(MakeEngine(SearchPlace::kAuto)->info().search, "host");
  EXPECT_THAT(MakeEngine(SearchPlace::kDevice)->info().search, HasSubstr("device, no graphs"));
}

TEST(DeviceSearchTest, AnswersAndStablePrefixesAreThoseOfTheHost) {
  const auto host = MakeEngine(SearchPlace::kHost), device = MakeEngine(SearchPlace::kDevice);
  for (SequenceId id = 1; id <= 150; ++id) {
    const SequenceInput input = AnySequence(id);
    const Answer expected = Decode(*host, input), got = Decode(*device, input);
    ASSERT_TRUE(SameBits(got.hypotheses, expected.hypotheses)) << id;
    ASSERT_EQ(got.stable, expected.stable) << id;
  }
}

TEST(DeviceSearchTest, WhoJoinsAndWhoLeavesChangesNothing) {
  const auto host = MakeEngine(SearchPlace::kHost), device = MakeEngine(SearchPlace::kDevice);
  std::mt19937 random(3);
  std::map<SequenceId, std::vector<Hypothesis>> results;
  std::vector<SequenceId> under_way;
  constexpr SequenceId kMany = 250;
  for (SequenceId next = 1; next <= kMany || device->sequences() > 0;) {
    std::vector<SequenceInput> group;
    while (next <= kMany && std::ssize(group) < random() % 4) group.push_back(AnySequence(next++));
    if (device->HasRoom(group)) {
      ASSERT_THAT(device->Seat(group), IsOk());
      for (const SequenceInput& input : group) under_way.push_back(input.id);
    } else {
      next -= group.size();
    }
    if (!under_way.empty() && random() % 8 == 0) {
      const size_t which = random() % under_way.size();
      device->Release(under_way[which]);
      under_way.erase(under_way.begin() + which);
    }
    auto events = device->Step();
    ASSERT_THAT(events, IsOk());
    for (SequenceEvent& event : *events) {
      ASSERT_THAT(event.status, IsOk());
      if (!event.finished) continue;
      ASSERT_TRUE(results.emplace(event.id, std::move(event.hypotheses)).second);
      std::erase(under_way, event.id);
    }
  }
  EXPECT_EQ(device->rows_in_use(), 0);
  EXPECT_GT(std::ssize(results), kMany / 2);
  for (const auto& [id, hypotheses] : results) {
    ASSERT_TRUE(SameBits(hypotheses, Decode(*host, AnySequence(id)).hypotheses)) << id;
  }
}

// A sequence of the same name may be seated as soon as the first has left, in the same rows.
TEST(DeviceSearchTest, AStepInFlightSaysNothingToWhoCameAfterIt) {
  const auto host = MakeEngine(SearchPlace::kHost), device = MakeEngine(SearchPlace::kDevice);
  SequenceInput first = AnySequence(4), second = AnySequence(8);
  for (SequenceInput* input : {&first, &second}) {
    input->id = 1;
    input->target.reset();
    input->options.seed.reset();
    input->options.max_target_tokens = 12;
  }
  for (int steps = 1; steps < 6; ++steps) {
    ASSERT_THAT(device->Seat({&first, 1}), IsOk());
    for (int i = 0; i < steps; ++i) ASSERT_THAT(device->Step(), IsOk());
    device->Release(1);
    ASSERT_TRUE(SameBits(Decode(*device, second).hypotheses, Decode(*host, second).hypotheses));
  }
}

TEST(DeviceSearchTest, EventsAreAStepBehind) {
  const auto device = MakeEngine(SearchPlace::kDevice);
  SequenceInput input;
  input.id = 1;
  input.source = {5, 2};
  input.options = {.beam_size = 3, .min_target_tokens = 4, .max_target_tokens = 4};
  ASSERT_THAT(device->Seat({&input, 1}), IsOk());
  std::vector<int> counts;
  while (device->sequences() > 0) {
    const auto events = device->Step();
    ASSERT_THAT(events, IsOk());
    counts.push_back(events->front().target_tokens);
  }
  EXPECT_THAT(counts, ElementsAre(0, 1, 2, 3, 4, 5)) << "and no step is launched for nothing";
}

TEST(DeviceSearchTest, AModelWithoutProbabilitiesFailsItsSequenceAndNoOther) {
  const auto host = MakeEngine(SearchPlace::kHost), device = MakeEngine(SearchPlace::kDevice);
  SequenceInput bad;
  bad.id = 1;
  bad.source = {5, TinyModel::kMarked, 2};
  SequenceInput good = AnySequence(8);
  good.id = 2;
  ASSERT_THAT(device->Seat(std::vector{bad, good}), IsOk());
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
  EXPECT_TRUE(SameBits(last[2].hypotheses, Decode(*host, good).hypotheses));
}

TEST(DeviceSearchTest, AStepThatFailsLosesWhoIsSeatedAndNothingElse) {
  const auto host = MakeEngine(SearchPlace::kHost), device = MakeEngine(SearchPlace::kDevice);
  SequenceInput bad = AnySequence(8);
  bad.id = 1;
  bad.prefix = {7, TinyModel::kThrower};
  bad.options.max_target_tokens = 9;
  ASSERT_THAT(device->Seat({&bad, 1}), IsOk());
  absl::Status status;
  while (device->sequences() > 0) status = device->Step().status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr("the thrower")));
  EXPECT_EQ(device->rows_in_use(), 0);
  const SequenceInput good = AnySequence(9);
  EXPECT_TRUE(SameBits(Decode(*device, good).hypotheses, Decode(*host, good).hypotheses));
}

TEST(DeviceSearchTest, SizesOfStepsWasteAQuarterAtMost) {
  EXPECT_THAT(StepSizes(1), ElementsAre(1));
  EXPECT_THAT(StepSizes(7), ElementsAre(1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(StepSizes(40),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40));
  for (int most : {1, 2, 9, 160, 2560, 3001}) {
    const std::vector<int> sizes = StepSizes(most);
    EXPECT_EQ(sizes.back(), most);
    for (size_t i = 1; i < sizes.size(); ++i) {
      EXPECT_GT(sizes[i], sizes[i - 1]);
      // The fewest rows that need this size fill four fifths of it.
      EXPECT_GE(5 * (sizes[i - 1] + 1), 4 * sizes[i]);
    }
  }
}

TEST(DeviceSearchTest, PlacesHaveNames) {
  EXPECT_EQ(*ParseSearchPlace("auto"), SearchPlace::kAuto);
  EXPECT_EQ(*ParseSearchPlace("host"), SearchPlace::kHost);
  EXPECT_EQ(*ParseSearchPlace("device"), SearchPlace::kDevice);
  EXPECT_THAT(ParseSearchPlace("gpu"), StatusIs(absl::StatusCode::kInvalidArgument,
                                                HasSubstr("there are auto, host and device")));
}

}  // namespace
}  // namespace linnet::model
