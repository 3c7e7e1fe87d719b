// Batch invariance and other properties of the engine, on a tiny model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "model/ops/pack_linear.h"
#include "model/torch/torch_engine.h"
#include "tests/support/status_matchers.h"
#include "tests/torch/tiny_model.h"

namespace linnet::model {
namespace {

using ::linnet::IsOk;
using ::linnet::model::testing::TinyBundle;
using ::linnet::model::testing::TinyModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr TorchEngineOptions kSmall = {
    .compute = ComputeType::kFloat32, .threads = 2, .rows = 40, .encoder_cache_tokens = 320};

std::unique_ptr<Engine> MakeEngine(const TorchEngineOptions& options = kSmall) {
  auto engine = MakeTorchEngine(TinyBundle(), options);
  if (!engine.ok()) {
    ADD_FAILURE() << engine.status();
    return nullptr;
  }
  return *std::move(engine);
}

// A sequence with a random source of that many tokens, including eos.
SequenceInput Sequence(SequenceId id, int tokens, int beam = 4, int limit = 12) {
  std::mt19937 random(id);
  SequenceInput input;
  input.id = id;
  while (std::ssize(input.source) + 1 < tokens) input.source.push_back(4 + random() % 41);
  input.source.push_back(2);
  input.options.beam_size = beam;
  input.options.n_best = beam;
  input.options.max_target_tokens = limit;
  return input;
}

using Results = std::map<SequenceId, std::vector<Hypothesis>>;

void TakeStep(Engine& engine, Results& results) {
  auto events = engine.Step();
  ASSERT_THAT(events, IsOk());
  for (SequenceEvent& event : *events) {
    EXPECT_THAT(event.status, IsOk());
    if (event.finished) {
      EXPECT_TRUE(results.emplace(event.id, std::move(event.hypotheses)).second)
          << "ended twice: " << event.id;
    }
  }
}

// Adds them together and steps until all have ended.
Results Decode(Engine& engine, const std::vector<SequenceInput>& inputs) {
  Results results;
  EXPECT_THAT(engine.Add(inputs), IsOk());
  while (engine.sequences() > 0 && !::testing::Test::HasFailure()) TakeStep(engine, results);
  return results;
}

// Bit for bit: no tolerance.
void ExpectSame(const std::vector<Hypothesis>& actual, const std::vector<Hypothesis>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(actual[i].tokens, expected[i].tokens);
    EXPECT_EQ(actual[i].token_scores, expected[i].token_scores);
    EXPECT_EQ(actual[i].score, expected[i].score);
    EXPECT_EQ(actual[i].ended_by_limit, expected[i].ended_by_limit);
  }
}

std::vector<Hypothesis> Alone(const SequenceInput& input,
                              const TorchEngineOptions& options = kSmall) {
  auto engine = MakeEngine(options);
  return Decode(*engine, {input}).at(input.id);
}

class TorchEngineTest : public ::testing::Test {
 protected:
  std::unique_ptr<Engine> engine_ = MakeEngine();
};

TEST_F(TorchEngineTest, ReportsItsInfo) {
  const EngineInfo& info = engine_->info();
  EXPECT_EQ(info.device, "cpu");
  EXPECT_EQ(info.compute_type, "float32");
  EXPECT_EQ(info.threads, 2);
  EXPECT_EQ(info.rows, 40);
  EXPECT_EQ(info.vocabulary_size, TinyModel::kVocabulary);
  EXPECT_EQ(info.limits.max_source_tokens, TinyModel::kMaxSourceTokens);
  EXPECT_EQ(engine_->sequences(), 0) << "nothing of the warm-up is left";
  EXPECT_EQ(engine_->rows_in_use(), 0);
}

TEST_F(TorchEngineTest, ResultDependsOnTheSource) {
  const Results results = Decode(*engine_, {Sequence(1, 9), Sequence(2, 9), Sequence(3, 20)});
  EXPECT_NE(results.at(1)[0].tokens, results.at(2)[0].tokens);
  EXPECT_NE(results.at(1)[0].tokens, results.at(3)[0].tokens);
  for (const auto& [id, hypotheses] : results) {
    EXPECT_EQ(hypotheses.size(), 4);
    for (const Hypothesis& hypothesis : hypotheses) EXPECT_EQ(hypothesis.tokens.back(), 2);
  }
}

TEST_F(TorchEngineTest, IsBatchInvariant) {
  std::vector<SequenceInput> inputs;
  for (int i = 1; i <= 9; ++i) inputs.push_back(Sequence(i, 3 + 4 * i, 1 + i % 5, 5 + 2 * i));
  const Results together = Decode(*engine_, inputs);
  ASSERT_EQ(together.size(), inputs.size());
  for (const SequenceInput& input : inputs) ExpectSame(Alone(input), together.at(input.id));
}

TEST_F(TorchEngineTest, ResultDoesNotDependOnStepOfAdmission) {
  std::vector<SequenceInput> inputs;
  for (int i = 1; i <= 12; ++i) inputs.push_back(Sequence(i, 2 + 3 * i, 1 + (i * 7) % 6, 4 + i));
  Results results;
  std::deque<SequenceInput> waiting(inputs.begin(), inputs.end());
  for (int step = 0; !waiting.empty() || engine_->sequences() > 0; ++step) {
    if (!waiting.empty() && step % 2 == 0 && engine_->HasRoom({&waiting.front(), 1})) {
      ASSERT_THAT(engine_->Add({&waiting.front(), 1}), IsOk());
      waiting.pop_front();
    }
    TakeStep(*engine_, results);
    ASSERT_FALSE(HasFailure());
  }
  for (const SequenceInput& input : inputs) ExpectSame(results.at(input.id), Alone(input));
}

TEST_F(TorchEngineTest, ReleaseFreesRowsWithoutAffectingOthers) {
  const std::vector<SequenceInput> inputs = {Sequence(1, 10), Sequence(2, 30), Sequence(3, 17)};
  Results results;
  ASSERT_THAT(engine_->Add(inputs), IsOk());
  for (int i = 0; i < 3; ++i) TakeStep(*engine_, results);
  EXPECT_EQ(engine_->rows_in_use(), 12);
  engine_->Release(2);
  engine_->Release(2);   // already released: ignored
  engine_->Release(77);  // unknown: ignored
  EXPECT_EQ(engine_->rows_in_use(), 8);
  EXPECT_EQ(engine_->sequences(), 2);
  while (engine_->sequences() > 0) TakeStep(*engine_, results);
  EXPECT_FALSE(results.contains(2));
  ExpectSame(results.at(1), Alone(inputs[0]));
  ExpectSame(results.at(3), Alone(inputs[2]));
}

TEST_F(TorchEngineTest, ReusedSlotHasNoOldState) {
  const SequenceInput last = Sequence(9, 12);
  const std::vector<Hypothesis> expected = Alone(last);
  Results results;
  // The first sequences are released in the middle of their targets, with sources in the blocks
  // that the last one gets.
  for (SequenceId id = 1; id <= 4; ++id) {
    ASSERT_THAT(engine_->Add(std::vector{Sequence(id, 40, 8, 24)}), IsOk());
    for (SequenceId step = 0; step < 2 + id; ++step) TakeStep(*engine_, results);
    engine_->Release(id);
  }
  ExpectSame(Decode(*engine_, {last}).at(9), expected);
}

TEST_F(TorchEngineTest, SequencesWithDifferentOptionsShareAStep) {
  std::vector<SequenceInput> inputs = {Sequence(1, 9, 1), Sequence(2, 9, 5), Sequence(3, 9, 3),
                                       Sequence(4, 9, 2)};
  inputs[0].options.max_target_tokens = 3;
  inputs[1].options.length_penalty = 0.0f;
  inputs[1].options.temperature = 2.0f;
  inputs[2].options.min_target_tokens = 10;
  inputs[2].options.no_repeat_ngram_size = 2;
  inputs[3].prefix = {7, 8, 9};
  inputs[3].options.n_best = 1;
  const Results together = Decode(*engine_, inputs);
  for (const SequenceInput& input : inputs) ExpectSame(together.at(input.id), Alone(input));
  EXPECT_LE(together.at(1)[0].tokens.size(), 4);
  EXPECT_GE(together.at(3)[0].tokens.size(), 11);
  EXPECT_EQ(together.at(4).size(), 1);
  EXPECT_THAT(std::vector(together.at(4)[0].tokens.begin(), together.at(4)[0].tokens.begin() + 3),
              ElementsAre(7, 8, 9));
}

TEST_F(TorchEngineTest, SearchSamplingAndScoringShareAStep) {
  std::vector<SequenceInput> inputs = {Sequence(1, 9, 4), Sequence(2, 20, 3), Sequence(3, 14, 2),
                                       Sequence(4, 9, 4)};
  inputs[1].options.seed = 11;
  inputs[2].options.top_k = 7;
  inputs[2].options.temperature = 1.5f;
  inputs[3].target = {7, 8, 9, 9, 2};
  ASSERT_THAT(engine_->Check(inputs[3]), IsOk());
  Results together = Decode(*engine_, inputs);
  for (const SequenceInput& input : inputs) ExpectSame(together.at(input.id), Alone(input));
  EXPECT_EQ(together.at(2).size(), 3);
  EXPECT_THAT(together.at(4)[0].tokens, ElementsAre(7, 8, 9, 9, 2));
}

TEST_F(TorchEngineTest, ScoringNeedsOneRowAndEqualsTheSearch) {
  const SequenceInput search = Sequence(1, 14, 4);
  const std::vector<Hypothesis> found = Decode(*engine_, {search}).at(1);
  std::vector<SequenceInput> given;
  for (const Hypothesis& hypothesis : found) {
    given.push_back(search);
    given.back().id = 10 + given.size();
    given.back().target = hypothesis.tokens;
  }
  ASSERT_THAT(engine_->Add(given), IsOk());
  EXPECT_EQ(engine_->rows_in_use(), 4);
  Results results;
  while (engine_->sequences() > 0 && !HasFailure()) TakeStep(*engine_, results);
  for (size_t i = 0; i < found.size(); ++i) {
    Hypothesis expected = found[i];
    expected.ended_by_limit = false;  // the target contains its eos
    ExpectSame(results.at(given[i].id), {expected});
  }
}

TEST_F(TorchEngineTest, FreesAllRowsAndBlocks) {
  Results results;
  for (SequenceId round = 0; round < 5; ++round) {
    // Ten sources of two blocks fill the encoder cache, and forty rows all slots.
    std::vector<SequenceInput> inputs;
    for (SequenceId i = 1; i <= 10; ++i) inputs.push_back(Sequence(10 * round + i, 17 + i, 4, 6));
    ASSERT_TRUE(engine_->HasRoom(inputs)) << "round " << round;
    ASSERT_THAT(engine_->Add(inputs), IsOk());
    EXPECT_FALSE(engine_->HasRoom(std::vector{Sequence(999, 1, 1)}));
    TakeStep(*engine_, results);
    engine_->Release(10 * round + 3);
    EXPECT_TRUE(engine_->HasRoom(std::vector{Sequence(999, 32, 4)}));
    EXPECT_FALSE(engine_->HasRoom(std::vector{Sequence(999, 33, 4)}))
        << "a third block is not free";
    EXPECT_FALSE(engine_->HasRoom(std::vector{Sequence(999, 32, 5)})) << "a fifth row is not free";
    while (engine_->sequences() > 0) TakeStep(*engine_, results);
    EXPECT_EQ(engine_->rows_in_use(), 0);
  }
}

TEST_F(TorchEngineTest, GreedySearchPicksTheLikeliestToken) {
  // Beam 1 with any prefix of its own result forced must give the same result.
  const SequenceInput input = Sequence(5, 14, 1);
  const Hypothesis greedy = Decode(*engine_, {input}).at(5)[0];
  for (size_t length = 1; length < greedy.tokens.size(); ++length) {
    SequenceInput forced = input;
    forced.prefix.assign(greedy.tokens.begin(), greedy.tokens.begin() + length);
    ExpectSame(Decode(*engine_, {forced}).at(5), {greedy});
  }
}

TEST_F(TorchEngineTest, ThreadsDoNotChangeTheResult) {
  for (ComputeType compute : {ComputeType::kFloat32, ComputeType::kInt8}) {
    TorchEngineOptions one = kSmall, two = kSmall;
    one.compute = two.compute = compute;
    one.threads = 1;
    for (SequenceId id = 1; id <= 4; ++id) {
      const SequenceInput input = Sequence(id, 5 * static_cast<int>(id));
      ExpectSame(Alone(input, two), Alone(input, one));
    }
  }
}

// Searches, samples from all tokens and from a few, given targets and prefixes, of many sizes.
std::vector<SequenceInput> AnyInputs(int count) {
  std::mt19937 random(17);
  std::vector<SequenceInput> inputs;
  for (int i = 1; i <= count; ++i) {
    SequenceInput& input =
        inputs.emplace_back(Sequence(i, 1 + static_cast<int>(random() % 40), 1 + random() % 9,
                                     1 + static_cast<int>(random() % 20)));
    SearchOptions& options = input.options;
    if (i % 3 == 0) options.temperature = 0.5f + static_cast<float>(random() % 3);
    if (i % 4 == 0) options.unknown_penalty = 0.5f;
    switch (i % 6) {
      case 1:
        options.seed = random();  // samples from whole rows
        break;
      case 2:
        options.top_k = 1 + static_cast<int>(random() % 60);  // of 48 tokens
        break;
      case 3:
        options.no_repeat_ngram_size = 1 + static_cast<int>(random() % 3);
        break;
      case 4:
        input.target = {7, 9, static_cast<TokenId>(4 + random() % 40), 2};
        break;
      case 5:
        input.prefix = {static_cast<TokenId>(4 + random() % 40)};
        break;
      default:
        break;
    }
  }
  return inputs;
}

class ComputeTypeInvarianceTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    options_.compute = *ParseComputeType(GetParam());
    if (options_.compute == ComputeType::kBfloat16 && !ops::HasBfloat16Gemm())
      GTEST_SKIP() << "this processor has no gemm in bfloat16";
  }

  TorchEngineOptions options_ = kSmall;
};

// Batch invariance, bit for bit, for every compute type, packed or not (bfloat16).
TEST_P(ComputeTypeInvarianceTest, HoldsInRandomBatches) {
  auto made = MakeTorchEngine(TinyBundle(), options_);
  ASSERT_THAT(made, IsOk());
  const std::unique_ptr<Engine> engine = *std::move(made);
  EXPECT_EQ(engine->info().compute_type, GetParam());
  const std::vector<SequenceInput> inputs = AnyInputs(30);
  std::mt19937 random(23);
  Results results;
  size_t next = 0;
  while (next < inputs.size() || engine->sequences() > 0) {
    const size_t count = std::min<size_t>(random() % 4, inputs.size() - next);
    const std::span<const SequenceInput> group(&inputs[next], count);
    if (engine->HasRoom(group)) {
      ASSERT_THAT(engine->Add(group), IsOk());
      next += count;
    }
    TakeStep(*engine, results);
    ASSERT_FALSE(HasFailure());
  }
  for (const SequenceInput& input : inputs) {
    ExpectSame(results.at(input.id), Decode(*engine, {input}).at(input.id));
  }
}

// The search of the device reads whole rows of logits, also on the CPU.
TEST_P(ComputeTypeInvarianceTest, StepBestGivesTheResultsOfWholeRows) {
  auto picks = MakeTorchEngine(TinyBundle(), options_);
  options_.search = SearchPlace::kDevice;
  auto whole = MakeTorchEngine(TinyBundle(), options_);
  ASSERT_THAT(picks, IsOk());
  ASSERT_THAT(whole, IsOk());
  for (const SequenceInput& input : AnyInputs(12)) {
    ExpectSame(Decode(**picks, {input}).at(input.id), Decode(**whole, {input}).at(input.id));
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, ComputeTypeInvarianceTest,
                         ::testing::Values("float32", "bfloat16", "int8"),
                         [](const auto& param) { return std::string(param.param); });

// Searches with more rows than ScriptedModel gives to one thread, of different widths.
TEST(InvarianceTest, PartsOfManyRowsGiveTheSameResults) {
  for (ComputeType compute : {ComputeType::kFloat32, ComputeType::kInt8}) {
    TorchEngineOptions options = kSmall;
    options.compute = compute;
    options.rows = 200;
    options.encoder_cache_tokens = 1280;
    const std::unique_ptr<Engine> engine = MakeEngine(options);
    std::vector<SequenceInput> inputs;
    for (int id = 1; id <= 20; ++id) {
      inputs.push_back(Sequence(id, 1 + 3 * id % 40, id <= 10 ? 9 : 1 + id % 5, 3 + id % 15));
    }
    const Results together = Decode(*engine, inputs);
    for (const SequenceInput& input : inputs) {
      ExpectSame(together.at(input.id), Decode(*engine, {input}).at(input.id));
    }
  }
}

TEST_F(TorchEngineTest, MaskedEosRunsEveryHypothesisToItsLimit) {
  TorchEngineOptions options = kSmall;
  options.mask_eos = true;
  auto engine = MakeEngine(options);
  Results results;
  ASSERT_THAT(engine->Add(std::vector{Sequence(1, 9, 3, 7)}), IsOk());
  for (int step = 1; step <= 8; ++step) {
    EXPECT_EQ(engine->sequences(), 1) << "step " << step;
    TakeStep(*engine, results);
  }
  ASSERT_TRUE(results.contains(1));
  for (const Hypothesis& hypothesis : results.at(1)) EXPECT_EQ(hypothesis.tokens.size(), 8);
}

TEST_F(TorchEngineTest, EventsCountTheStepsOfEachSequence) {
  ASSERT_THAT(engine_->Add(std::vector{Sequence(1, 9)}), IsOk());
  ASSERT_THAT(engine_->Step(), IsOk());
  ASSERT_THAT(engine_->Add(std::vector{Sequence(2, 9)}), IsOk());
  const auto events = engine_->Step();
  ASSERT_THAT(events, IsOk());
  ASSERT_EQ(events->size(), 2);
  EXPECT_EQ((*events)[0].id, 1);
  EXPECT_EQ((*events)[0].target_tokens, 2);
  EXPECT_EQ((*events)[1].id, 2);
  EXPECT_EQ((*events)[1].target_tokens, 1);
}

TEST_F(TorchEngineTest, EmptyEngineStepsWithoutEvents) {
  const auto events = engine_->Step();
  ASSERT_THAT(events, IsOk());
  EXPECT_TRUE(events->empty());
}

}  // namespace
}  // namespace linnet::model
