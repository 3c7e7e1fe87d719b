// Decoders whose state holds the whole target, with as many columns of backpointers, and decoders
// that do not start from eos.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "model/torch/torch_engine.h"
#include "tests/support/status_matchers.h"
#include "tests/torch/tiny_model.h"

namespace linnet::model {
namespace {

using ::linnet::IsOk;
using ::linnet::model::testing::BundleOf;
using ::linnet::model::testing::TinyModel;
using ::testing::Each;
using ::testing::Not;
using ::testing::SizeIs;

constexpr TorchEngineOptions kSmall = {
    .compute = ComputeType::kFloat32, .threads = 2, .rows = 40, .encoder_cache_tokens = 320};

// One layer of self-attention to the whole target (24 tokens and eos), with neighbouring heads,
// after a narrow convolution; `first` is code at the beginning of a step, `output` the end of an
// expression for the bias of the logits.
enum class Columns { kAll, kNeeded };

std::string Attentive(const std::string& first = "", const std::string& output = "",
                      Columns columns = Columns::kAll) {
  const bool all = columns == Columns::kAll;
  return std::string("def min_backpointers(self) -> int:\n    return ") + (all ? "25" : "3") + R"(

def output_bias(self) -> Tensor:
    return self.bias )" +
         output + R"(

def encode(self, source: Tensor, lengths: Tensor) -> List[Tensor]:
    x = torch.embedding(self.embed_source, source)
    return [linnet.linear(x, self.memory1, None).view([x.size(0), x.size(1), 2, 32])]

def features(self, tokens: Tensor, positions: Tensor, backpointers: Tensor, blocks: Tensor, source_lengths: Tensor,
             encoder_cache: List[Tensor], state: List[Tensor]) -> Tensor:
    assert backpointers.size(1) == )" +
         (all ? "25" : "max(3, int(torch.max(positions)) + 1)") +
         R"(, "backpointers has a column for each position that can be read"
)" + first +
         R"(
    cache = state[1][:backpointers.size(1)]
    x = torch.embedding(self.embed_target, tokens)
    x = x + linnet.light_conv_step(x, self.target_taps, state[0], positions, backpointers)
    x = x + linnet.source_attention(linnet.linear(x, self.query1, None), encoder_cache[0], blocks, source_lengths, 4)
    key_value = linnet.linear(x, self.memory2, None).view([-1, 2, 32])
    x = x + linnet.self_attention_step(linnet.linear(x, self.query2, None), key_value[:, 0], key_value[:, 1], cache,
                                       positions, backpointers, 4, 3)
    return torch.tanh(x)

def logits_of(self, features: Tensor) -> Tensor:
    return linnet.linear(features, self.project, self.output_bias())

def step(self, tokens: Tensor, positions: Tensor, backpointers: Tensor, blocks: Tensor, source_lengths: Tensor,
         encoder_cache: List[Tensor], state: List[Tensor]) -> Tensor:
    return self.logits_of(self.features(tokens, positions, backpointers, blocks, source_lengths, encoder_cache, state))

def step_best(self, tokens: Tensor, positions: Tensor, backpointers: Tensor, blocks: Tensor, source_lengths: Tensor,
              encoder_cache: List[Tensor], state: List[Tensor],
              counts: Tensor, also: Tensor, temperatures: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    x = self.features(tokens, positions, backpointers, blocks, source_lengths, encoder_cache, state)
    return linnet.best_logits(x, self.project, self.output_bias(), counts, also, temperatures)

def output_rows(self, tokens: Tensor) -> Tuple[Tensor, Tensor]:
    return linnet.take_outputs(self.project, tokens), torch.index_select(self.output_bias(), 0, tokens)

def align(self, tokens: Tensor, positions: Tensor, backpointers: Tensor, blocks: Tensor, source_lengths: Tensor,
          encoder_cache: List[Tensor], state: List[Tensor], layer: int) -> Tensor:
    return torch.zeros([tokens.size(0), blocks.size(1) * 16])

def pack(self, kind: str) -> None:
    self.memory1 = linnet.pack_linear(self.memory1, kind)
    self.memory2 = linnet.pack_linear(self.memory2, kind)
    self.query1 = linnet.pack_linear(self.query1, kind)
    self.query2 = linnet.pack_linear(self.query2, kind)
    self.project = linnet.pack_linear(self.project, kind)

def new_state(self, slots: int) -> List[Tensor]:
    return [torch.zeros([3, slots, 32]), torch.zeros([25, slots, 2, 32])]

def new_encoder_cache(self, blocks: int, block_tokens: int) -> List[Tensor]:
    return [torch.zeros([blocks, block_tokens, 2, 32])]
)";
}

SequenceInput Sequence(SequenceId id, int tokens, int beam, TokenId eos) {
  std::mt19937 random(id);
  SequenceInput input;
  input.id = id;
  while (std::ssize(input.source) + 1 < tokens) input.source.push_back(4 + random() % 41);
  input.source.push_back(eos);
  input.options.beam_size = input.options.n_best = beam;
  input.options.max_target_tokens = TinyModel::kMaxTargetTokens;
  return input;
}

std::map<SequenceId, std::vector<Hypothesis>> Decode(Engine& engine,
                                                     const std::vector<SequenceInput>& inputs) {
  std::map<SequenceId, std::vector<Hypothesis>> results;
  EXPECT_THAT(engine.Add(inputs), IsOk());
  while (engine.sequences() > 0) {
    auto events = engine.Step();
    EXPECT_THAT(events, IsOk());
    if (!events.ok()) break;
    for (SequenceEvent& event : *events) {
      EXPECT_THAT(event.status, IsOk());
      if (event.finished) results[event.id] = std::move(event.hypotheses);
    }
  }
  return results;
}

// The scores of a hypothesis that moved between slots are those of the same tokens decoded in one
// slot.
TEST(DecoderStateTest, HypothesesReadTheirOwnStateInReorderedBeams) {
  auto engine = MakeTorchEngine(BundleOf(Attentive()), kSmall);
  ASSERT_THAT(engine, IsOk());
  std::vector<SequenceInput> inputs;
  for (int id = 1; id <= 5; ++id) inputs.push_back(Sequence(id, 3 * id, 3 + id, 2));
  const auto results = Decode(**engine, inputs);
  size_t longest = 0;
  for (const SequenceInput& input : inputs) {
    ASSERT_FALSE(results.at(input.id).empty());
    for (const Hypothesis& hypothesis : results.at(input.id)) {
      longest = std::max(longest, hypothesis.tokens.size());
      SequenceInput forced = input;
      forced.prefix.assign(hypothesis.tokens.begin(), hypothesis.tokens.end() - 1);
      forced.options.beam_size = forced.options.n_best = 1;
      forced.options.max_target_tokens = static_cast<int>(forced.prefix.size());
      const auto alone = Decode(**engine, {forced}).at(input.id);
      ASSERT_THAT(alone, SizeIs(1));
      EXPECT_EQ(alone[0].tokens, hypothesis.tokens);
      EXPECT_EQ(alone[0].token_scores, hypothesis.token_scores);
    }
  }
  EXPECT_EQ(longest, TinyModel::kMaxTargetTokens + 1) << "no target filled the state";
}

// With targets of all lengths, a step gets only the columns that the longest running target needs.
TEST(DecoderStateTest, ReducedReachDoesNotChangeResults) {
  auto all = MakeTorchEngine(BundleOf(Attentive()), kSmall);
  auto needed = MakeTorchEngine(BundleOf(Attentive("", "", Columns::kNeeded)), kSmall);
  ASSERT_THAT(all, IsOk());
  ASSERT_THAT(needed, IsOk());
  std::vector<SequenceInput> inputs;
  for (int id = 1; id <= 6; ++id) {
    inputs.push_back(Sequence(id, 2 * id, 1 + id, 2));
    inputs.back().options.max_target_tokens = id * TinyModel::kMaxTargetTokens / 6;
  }
  for (int round = 0; round < 2; ++round) {
    const auto want = Decode(**all, inputs), got = Decode(**needed, inputs);
    ASSERT_THAT(got, SizeIs(inputs.size()));
    for (const auto& [id, hypotheses] : want) {
      ASSERT_EQ(got.at(id).size(), hypotheses.size());
      for (size_t i = 0; i < hypotheses.size(); ++i) {
        EXPECT_EQ(got.at(id)[i].tokens, hypotheses[i].tokens);
        EXPECT_EQ(got.at(id)[i].token_scores, hypotheses[i].token_scores);
      }
    }
    std::reverse(inputs.begin(), inputs.end());  // other slots
  }
}

TEST(DecoderStateTest, ReusedSlotsDoNotChangeResults) {
  auto engine = MakeTorchEngine(BundleOf(Attentive()), kSmall);
  ASSERT_THAT(engine, IsOk());
  const auto fresh = Decode(**engine, {Sequence(7, 9, 4, 2)}).at(7);
  for (int id = 10; id < 14; ++id) Decode(**engine, {Sequence(id, 12, 10, 2)});
  const auto later = Decode(**engine, {Sequence(7, 9, 4, 2)}).at(7);
  ASSERT_EQ(later.size(), fresh.size());
  for (size_t i = 0; i < fresh.size(); ++i) {
    EXPECT_EQ(later[i].tokens, fresh[i].tokens);
    EXPECT_EQ(later[i].token_scores, fresh[i].token_scores);
  }
}

// Marian's ids: eos 0, unk 1, padding last; the decoder starts from the padding token.
TEST(DecoderStateTest, MayStartFromPaddingWithoutEmittingIt) {
  Bundle bundle = BundleOf(Attentive(R"(
    begins = torch.logical_and(torch.eq(positions, 0), torch.ge(torch.select(backpointers, 1, 0), 0))
    assert bool(torch.all(torch.eq(torch.masked_select(tokens, begins), 47))), "the first input is not the padding"
    assert bool(torch.all(torch.eq(begins, torch.eq(tokens, 47)))), "the padding comes again"
)",
                                     "+ 100000.0 * torch.eq(torch.arange(48), 47)"));
  auto& vocabulary = *bundle.manifest.mutable_vocabulary();
  vocabulary.set_bos_id(0);
  vocabulary.set_eos_id(0);
  vocabulary.set_unk_id(1);
  vocabulary.set_pad_id(TinyModel::kVocabulary - 1);
  vocabulary.set_start_id(TinyModel::kVocabulary - 1);
  auto engine = MakeTorchEngine(bundle, kSmall);
  ASSERT_THAT(engine, IsOk());
  EXPECT_EQ((*engine)->info().special.start, 47);
  const auto results = Decode(**engine, {Sequence(1, 8, 5, 0), Sequence(2, 17, 1, 0)});
  ASSERT_THAT(results, SizeIs(2));
  for (const auto& [id, hypotheses] : results) {
    EXPECT_THAT(hypotheses, SizeIs(id == 1 ? 5 : 1));
    for (const Hypothesis& hypothesis : hypotheses) {
      EXPECT_THAT(hypothesis.tokens, Each(Not(47)));
      EXPECT_EQ(hypothesis.tokens.back(), 0);
    }
  }
}

}  // namespace
}  // namespace linnet::model
