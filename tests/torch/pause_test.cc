// Pauses change no answer, whatever the decoder, the search and the compute type.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "model/torch/module/compute_type.h"
#include "model/torch/torch_engine.h"
#include "tests/support/status_matchers.h"
#include "tests/torch/decoding.h"
#include "tests/torch/tiny_model.h"

namespace linnet::model::testing {
namespace {

// AnySequence, also with alignments and with phrases that the target must contain.
SequenceInput AnyPausedSequence(SequenceId id) {
  SequenceInput input = AnySequence(id);
  input.align = id % 5 == 0;
  if (id % 4 == 0) {
    input.target.reset();
    input.options.seed.reset();
    input.options.beam_size = input.options.n_best = 2 + static_cast<int>(id % 3);
    input.options.max_target_tokens = 12;
    input.constraints = {{7, 9}, {static_cast<TokenId>(10 + id % 30)}};
  }
  return input;
}

struct Case {
  ComputeType compute;
  SearchPlace search;
};

class PauseTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    TorchEngineOptions options = SmallEngine(GetParam().search);
    options.compute = GetParam().compute;
    auto made = MakeTorchEngine(TinyBundle(), options);
    ASSERT_THAT(made, IsOk());
    engine_ = *std::move(made);
  }

  std::unique_ptr<Engine> engine_;
};

TEST_P(PauseTest, AnswersAreThoseOfUndisturbedRuns) {
  constexpr SequenceId kMany = 60;
  std::mt19937 random(31);
  std::map<SequenceId, std::vector<Hypothesis>> results;
  std::map<SequenceId, std::vector<float>> attention;
  std::map<SequenceId, bool> paused;  // of the running sequences
  int pauses = 0, steps_without_rows = 0;
  for (SequenceId next = 1; next <= kMany || engine_->sequences() > 0;) {
    if (const SequenceInput input = AnyPausedSequence(next);
        next <= kMany && engine_->HasRoom({&input, 1})) {
      ASSERT_THAT(engine_->Check(input), IsOk());
      ASSERT_THAT(engine_->Add({&input, 1}), IsOk());
      paused[next++] = false;
    }
    const int rows = engine_->rows_in_use();
    for (auto& [id, is_paused] : paused) {
      if (random() % 3 > 0) continue;
      is_paused = !is_paused;
      is_paused ? engine_->Pause(id) : engine_->Resume(id);
      pauses += is_paused;
    }
    engine_->Pause(999);  // unknown: ignored
    EXPECT_EQ(engine_->rows_in_use(), rows) << "a paused sequence keeps its rows";
    steps_without_rows += std::ranges::all_of(paused, [](const auto& each) { return each.second; });
    auto events = engine_->Step();
    ASSERT_THAT(events, IsOk());
    for (SequenceEvent& event : *events) {
      EXPECT_THAT(event.status, IsOk());
      if (!event.finished) continue;
      EXPECT_TRUE(results.emplace(event.id, std::move(event.hypotheses)).second);
      attention[event.id] = std::move(event.attention);
      paused.erase(event.id);
    }
  }
  EXPECT_GT(pauses, 100);
  EXPECT_GT(steps_without_rows, 0);
  EXPECT_EQ(results.size(), kMany);
  for (SequenceId id = 1; id <= kMany; ++id) {
    const SequenceInput input = AnyPausedSequence(id);
    ASSERT_THAT(engine_->Add({&input, 1}), IsOk());
    SequenceEvent last;
    while (engine_->sequences() > 0) {
      auto events = engine_->Step();
      ASSERT_THAT(events, IsOk());
      last = std::move(events->front());
    }
    EXPECT_TRUE(SameAnswers(results[id], last.hypotheses)) << id;
    EXPECT_EQ(results[id].size(), last.hypotheses.size()) << id;
    if (TestDevice() == Device::kCpu) {
      EXPECT_EQ(attention[id], last.attention) << id;
    }
  }
}

TEST_P(PauseTest, PausedSequenceTakesNoStep) {
  SequenceInput inputs[2];
  for (SequenceId i : {0, 1}) {
    inputs[i].id = i + 1;
    inputs[i].source = {5, 6, 2};
    inputs[i].options = {.beam_size = 2, .min_target_tokens = 12, .max_target_tokens = 12};
  }
  ASSERT_THAT(engine_->Add(inputs), IsOk());
  std::vector<SequenceEvent> events;
  const auto step = [&] { events = *engine_->Step(); };
  for (int i = 0; i < 3; ++i) step();
  engine_->Pause(1);
  step();
  const int before = events.back().target_tokens;
  for (int i = 1; i <= 3; ++i) {
    step();
    ASSERT_EQ(events.size(), 1);
    EXPECT_EQ(events.front().id, 2);
    EXPECT_EQ(events.front().target_tokens, before + i);
  }
  engine_->Resume(1);
  for (int i = 0; i < 2; ++i) step();
  ASSERT_EQ(events.size(), 2);
  EXPECT_EQ(events[0].target_tokens, GetParam().search == SearchPlace::kHost ? 5 : 4);
}

std::vector<Case> Cases() {
  if (TestDevice() != Device::kCpu) return {{ComputeType::kFloat32, SearchPlace::kDevice}};
  std::vector<Case> cases;
  for (ComputeType compute : {ComputeType::kFloat32, ComputeType::kInt8}) {
    for (SearchPlace search : {SearchPlace::kHost, SearchPlace::kDevice})
      cases.push_back({compute, search});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Engines, PauseTest, ::testing::ValuesIn(Cases()), [](const auto& param) {
  return std::string(ComputeTypeName(param.param.compute)) +
         (param.param.search == SearchPlace::kHost ? "Host" : "Device");
});

}  // namespace
}  // namespace linnet::model::testing
