// The attention weights that an engine reports: of the searches, or of a pass behind each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <vector>

#include "model/torch/torch_engine.h"
#include "tests/support/status_matchers.h"
#include "tests/torch/tiny_model.h"

namespace linnet::model {
namespace {

using ::linnet::IsOk;
using ::linnet::StatusIs;
using ::linnet::model::testing::PassAlignBundle;
using ::linnet::model::testing::TinyBundle;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr TorchEngineOptions kSmall = {
    .compute = ComputeType::kFloat32, .threads = 2, .rows = 40, .encoder_cache_tokens = 640};

struct AlignmentTest : ::testing::Test {
  std::unique_ptr<Engine> engine = *MakeTorchEngine(TinyBundle(), kSmall);

  // From now on an engine that aligns in a pass behind the search.
  void AlignInPasses() { engine = *MakeTorchEngine(PassAlignBundle(), kSmall); }

  // A sequence with a random source of that many tokens.
  static SequenceInput Sequence(SequenceId id, int tokens, bool align, int beam = 4) {
    std::mt19937 random(id);
    SequenceInput input;
    input.id = id;
    while (std::ssize(input.source) + 1 < tokens) input.source.push_back(4 + random() % 41);
    input.source.push_back(2);
    input.options.beam_size = beam;
    input.options.max_target_tokens = 12;
    input.align = align;
    return input;
  }

  // The last event of each sequence.
  std::map<SequenceId, SequenceEvent> Decode(const std::vector<SequenceInput>& inputs) {
    std::map<SequenceId, SequenceEvent> ended;
    EXPECT_THAT(engine->Add(inputs), IsOk());
    while (engine->sequences() > 0 && !HasFailure()) {
      auto events = engine->Step();
      if (!events.ok()) {
        ADD_FAILURE() << events.status();
        break;
      }
      for (SequenceEvent& event : *events) {
        EXPECT_THAT(event.status, IsOk());
        const SequenceId id = event.id;
        if (event.finished && !ended.emplace(id, std::move(event)).second)
          ADD_FAILURE() << "ended twice: " << id;
      }
    }
    return ended;
  }
};

TEST_F(AlignmentTest, IsBatchInvariant) {
  std::vector<SequenceInput> inputs;
  for (SequenceId id = 1; id <= 8; ++id)
    inputs.push_back(Sequence(id, 2 + static_cast<int>(id) * 4, id % 2 == 0));
  auto together = Decode(inputs);
  ASSERT_EQ(together.size(), inputs.size());
  for (const SequenceInput& input : inputs) {
    const SequenceEvent alone = std::move(Decode({input}).at(input.id));
    const SequenceEvent& event = together.at(input.id);
    EXPECT_EQ(event.hypotheses.front().tokens, alone.hypotheses.front().tokens);
    EXPECT_EQ(event.attention, alone.attention);
    const size_t target = event.hypotheses.front().tokens.size();
    EXPECT_EQ(event.attention.size(), input.align ? target * input.source.size() : 0);
  }
}

TEST_F(AlignmentTest, NeedsNoStepBehindTheSearch) {
  for (const bool passes : {false, true}) {
    if (passes) AlignInPasses();
    SequenceInput given = Sequence(3, 9, true);
    given.target = {5, 2};
    int steps = 0;
    ASSERT_THAT(engine->Add({&given, 1}), IsOk());
    for (; engine->sequences() > 0; ++steps) ASSERT_THAT(engine->Step(), IsOk());
    EXPECT_EQ(steps, passes ? 2 : 1);
  }
}

TEST_F(AlignmentTest, SearchesGiveTheWeightsOfPasses) {
  std::vector<SequenceInput> inputs;
  for (SequenceId id = 1; id <= 12; ++id) {
    SequenceInput& input = inputs.emplace_back(Sequence(id, 2 + static_cast<int>(id), true, 3));
    if (id % 3 == 0) input.silent = {40, 41};
    if (id % 3 == 1) input.prefix = {7, 8, 9};
    if (id % 4 == 0) {  // whole rows; of the samples some begin alike
      input.options.seed = id;
      input.options.temperature = 0.3f;
    }
    input.options.n_best = 3;
  }
  // In two groups, since an engine has 40 rows.
  std::map<SequenceId, SequenceEvent> found, expected;
  const std::vector<SequenceInput> rest(inputs.begin() + 6, inputs.end());
  inputs.resize(6);
  found = Decode(inputs);
  found.merge(Decode(rest));
  AlignInPasses();
  expected = Decode(inputs);
  expected.merge(Decode(rest));
  ASSERT_EQ(found.size(), 12);
  for (const auto& [id, event] : expected) {
    EXPECT_EQ(found.at(id).hypotheses.front().tokens, event.hypotheses.front().tokens);
    EXPECT_EQ(found.at(id).attention, event.attention);
    EXPECT_FALSE(event.attention.empty());
  }
}

TEST_F(AlignmentTest, DoesNotChangeTheResult) {
  for (SequenceId id = 1; id <= 6; ++id) {
    const SequenceEvent plain = std::move(Decode({Sequence(id, 9, false)}).at(id));
    const SequenceEvent aligned = std::move(Decode({Sequence(id, 9, true)}).at(id));
    EXPECT_EQ(aligned.hypotheses.front().tokens, plain.hypotheses.front().tokens);
    EXPECT_EQ(aligned.hypotheses.front().token_scores, plain.hypotheses.front().token_scores);
    EXPECT_THAT(plain.attention, IsEmpty());
  }
}

TEST_F(AlignmentTest, GivenTargetHasTheAlignmentOfItsSearch) {
  SequenceInput input = Sequence(5, 11, true);
  const SequenceEvent found = std::move(Decode({input}).at(5));
  input.target = found.hypotheses.front().tokens;
  EXPECT_EQ(Decode({input}).at(5).attention, found.attention);
}

TEST_F(AlignmentTest, LeavesOutLanguageTokensOnBothSides) {
  SequenceInput input = Sequence(5, 11, true);
  input.silent = {40, 41};
  const SequenceEvent whole = std::move(Decode({input}).at(5));
  input.before_text = 2;
  const SequenceEvent event = std::move(Decode({input}).at(5));
  // The target is the same, since the decoder reads the same; weights of two source tokens lack.
  EXPECT_EQ(event.hypotheses.front().tokens, whole.hypotheses.front().tokens);
  const size_t target = event.hypotheses.front().tokens.size();
  ASSERT_EQ(whole.attention.size(), target * 11);
  ASSERT_EQ(event.attention.size(), target * 9);
  for (size_t t = 0; t < target; ++t) {
    for (size_t s = 0; s < 9; ++s)
      EXPECT_EQ(event.attention[t * 9 + s], whole.attention[t * 11 + s + 2]);
  }
  // They are the weights behind the language tokens: those of a target that contains them.
  input.silent.clear();
  input.before_text = 0;
  input.target = {40, 41};
  input.target->insert(input.target->end(), event.hypotheses.front().tokens.begin(),
                       event.hypotheses.front().tokens.end());
  const SequenceEvent given = std::move(Decode({input}).at(5));
  EXPECT_EQ(std::vector<float>(given.attention.begin() + 2 * 11, given.attention.end()),
            whole.attention);
}

TEST_F(AlignmentTest, FreesRowsAfterThePassAndAfterRelease) {
  AlignInPasses();
  Decode({Sequence(1, 9, true), Sequence(2, 30, true)});
  EXPECT_EQ(engine->rows_in_use(), 0);
  SequenceInput given = Sequence(3, 9, true);
  given.target = {5, 6, 7, 2};
  ASSERT_THAT(engine->Add({&given, 1}), IsOk());
  ASSERT_THAT(engine->Step(), IsOk());  // the pass is next
  ASSERT_EQ(engine->sequences(), 1);
  engine->Release(3);
  EXPECT_EQ(engine->rows_in_use(), 0);
  EXPECT_EQ(Decode({Sequence(1, 9, true)}).size(), 1);
}

TEST_F(AlignmentTest, ReportsWholeTargetAsStableDuringThePass) {
  AlignInPasses();
  SequenceInput given = Sequence(3, 9, true);
  given.target = {5, 6, 7, 2};
  given.report_stable = true;
  ASSERT_THAT(engine->Add({&given, 1}), IsOk());
  std::vector<TokenId> stable;
  while (engine->sequences() > 0) {
    const auto events = engine->Step();
    ASSERT_THAT(events, IsOk());
    if (!events->front().stable.empty()) stable = events->front().stable;
  }
  EXPECT_EQ(stable, *given.target);
}

}  // namespace
}  // namespace linnet::model
