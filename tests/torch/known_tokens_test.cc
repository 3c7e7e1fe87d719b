// Targets whose tokens are known: all of them in one step of the engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "model/torch/module/scripted_model.h"
#include "model/torch/scripted_engine.h"
#include "model/torch/torch_engine.h"
#include "tests/support/status_matchers.h"
#include "tests/torch/decoding.h"
#include "tests/torch/tiny_model.h"

namespace linnet::model {
namespace {

using ::linnet::IsOk;
using ::linnet::model::testing::DecodeInBatches;
using ::linnet::model::testing::SameAnswers;
using ::linnet::model::testing::TinyBundle;
using ::linnet::model::testing::TinyModel;

using Events = std::map<SequenceId, SequenceEvent>;

constexpr int kLongest = TinyModel::kMaxTargetTokens;

std::unique_ptr<Engine> MakeEngine(ComputeType compute, int threads = 2) {
  auto engine = MakeTorchEngine(
      TinyBundle(),
      {.compute = compute, .threads = threads, .rows = 40, .encoder_cache_tokens = 640});
  EXPECT_THAT(engine, IsOk());
  return engine.ok() ? *std::move(engine) : nullptr;
}

// An engine that takes single steps, and a pass for each alignment, as those on a GPU do.
std::unique_ptr<Engine> MakeSingleSteps(ComputeType compute) {
  auto model = ScriptedModel::Load(TinyBundle().model_file(), at::kCPU, compute);
  EXPECT_THAT(model, IsOk());
  return std::make_unique<ScriptedEngine>(*std::move(model), MakeEngine(compute)->info(),
                                          ScriptedEngineOptions{.one_shape = true}, std::nullopt);
}

std::vector<TokenId> Tokens(int count, std::mt19937& random) {
  std::vector<TokenId> tokens;
  while (std::ssize(tokens) < count) tokens.push_back(static_cast<TokenId>(4 + random() % 41));
  return tokens;
}

// A sequence whose target is known to some length, determined by the id.
SequenceInput KnownSequence(SequenceId id) {
  std::mt19937 random(static_cast<uint32_t>(id));
  SequenceInput input;
  input.id = id;
  input.source = Tokens(random() % 20, random);
  input.source.push_back(2);
  SearchOptions& options = input.options;
  options.beam_size = options.n_best = 1 + static_cast<int>(random() % 4);
  options.min_target_tokens = 0;
  options.max_target_tokens = kLongest;
  if (random() % 3 == 0) options.no_repeat_ngram_size = 2;
  if (random() % 3 == 0) options.repetition_penalty = 1.2f;
  if (random() % 3 == 0) options.unknown_penalty = 0.5f;
  input.align = random() % 2 == 0;
  input.report_stable = random() % 2 == 0;
  if (random() % 3 == 0) input.silent = {40, 41};
  const auto known = Tokens(random() % (kLongest + 1), random);
  if (random() % 2 == 0) {
    input.prefix = known;
    if (random() % 3 == 0) options.seed = random();
    if (random() % 4 == 0) options.max_target_tokens = static_cast<int>(known.size());
    if (random() % 4 == 0 && options.beam_size > 1 && !options.sampling() && known.size() < 9)
      input.constraints = {{9, 10}, {7}};
  } else {
    input.target = known;
    input.target->push_back(2);
  }
  return input;
}

// Decodes all, added in random groups.
Events DecodeAll(Engine& engine, const std::vector<SequenceInput>& inputs, std::mt19937& random) {
  Events ended;
  for (size_t next = 0; next < inputs.size() || engine.sequences() > 0;) {
    size_t last = next;
    while (last < inputs.size() && random() % 4 != 0) ++last;
    const auto group = std::span(inputs).subspan(next, last - next);
    if (engine.HasRoom(group)) {
      for (const SequenceInput& input : group) EXPECT_THAT(engine.Check(input), IsOk());
      EXPECT_THAT(engine.Add(group), IsOk());
      next = last;
    }
    auto events = engine.Step();
    EXPECT_THAT(events, IsOk());
    if (!events.ok()) return ended;
    for (SequenceEvent& event : *events) {
      EXPECT_THAT(event.status, IsOk());
      const SequenceId id = event.id;
      if (!event.finished) continue;
      EXPECT_TRUE(ended.emplace(id, std::move(event)).second);
    }
  }
  return ended;
}

TEST(KnownTokensTest, HaveTheAnswersOfSingleSteps) {
  std::vector<SequenceInput> inputs;
  for (SequenceId id = 1; id <= 80; ++id) inputs.push_back(KnownSequence(id));
  std::mt19937 random(3);
  for (const ComputeType compute : {ComputeType::kFloat32, ComputeType::kInt8}) {
    const auto single = MakeSingleSteps(compute);
    const Events want = DecodeAll(*single, inputs, random);
    for (const int threads : {1, 2}) {
      const auto engine = MakeEngine(compute, threads);
      const Events got = DecodeAll(*engine, inputs, random);
      ASSERT_EQ(got.size(), want.size());
      for (const auto& [id, event] : got) {
        EXPECT_TRUE(SameAnswers(event.hypotheses, want.at(id).hypotheses)) << id;
        EXPECT_EQ(event.attention, want.at(id).attention) << id;
      }
    }
  }
}

TEST(KnownTokensTest, OtherSequencesAreNotChanged) {
  const auto single = MakeSingleSteps(ComputeType::kFloat32);
  const auto engine = MakeEngine(ComputeType::kFloat32);
  std::mt19937 random(5);
  const auto want = DecodeInBatches(*single, 150, random);
  for (const auto& [id, hypotheses] : DecodeInBatches(*engine, 150, random)) {
    if (!want.contains(id)) continue;  // it was removed
    EXPECT_TRUE(SameAnswers(hypotheses, want.at(id))) << id;
  }
}

// The rows of a step are limited, and each step takes at least one target.
TEST(KnownTokensTest, ManyTargetsWaitForEachOther) {
  const auto engine = MakeEngine(ComputeType::kFloat32);
  std::vector<SequenceInput> inputs;
  for (SequenceId id = 1; id <= 12; ++id) {
    std::mt19937 random(static_cast<uint32_t>(id));
    SequenceInput& input = inputs.emplace_back();
    input.id = id;
    input.source = {5, 6, 2};
    input.target = Tokens(kLongest, random);
    input.target->push_back(2);
  }
  ASSERT_THAT(engine->Add(inputs), IsOk());
  std::vector<int> finished;
  while (engine->sequences() > 0) {
    const auto events = engine->Step();
    ASSERT_THAT(events, IsOk());
    finished.push_back(
        static_cast<int>(std::ranges::count(*events, true, &SequenceEvent::finished)));
  }
  EXPECT_THAT(finished, ::testing::ElementsAre(5, 5, 2));  // 128 rows, 25 for each target
}

}  // namespace
}  // namespace linnet::model
