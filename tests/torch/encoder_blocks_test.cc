// Sources that are encoded in blocks (block_encoder.h) have the keys and values of padded ones, in
// calls of any size.
#include "model/torch/encoder/block_encoder.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "model/torch/encoder/encoder_cache.h"
#include "model/torch/module/catch_torch_errors.h"
#include "model/torch/module/scripted_model.h"
#include "model/torch/torch_engine.h"
#include "tests/support/status_matchers.h"
#include "tests/torch/decoding.h"
#include "tests/torch/tiny_model.h"

namespace linnet::model {
namespace {

using ::linnet::IsOk;
using ::linnet::StatusIs;
using ::linnet::model::testing::AnySequence;
using ::linnet::model::testing::BlocksBundle;
using ::linnet::model::testing::Decode;
using ::linnet::model::testing::DecodeInBatches;
using ::linnet::model::testing::MakeEngine;
using ::linnet::model::testing::SameAnswers;
using ::linnet::model::testing::SmallEngine;
using ::linnet::model::testing::TinyModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Engine> MakeBlockEngine(TorchEngineOptions options) {
  auto engine = MakeTorchEngine(BlocksBundle(), options);
  if (!engine.ok()) {
    ADD_FAILURE() << engine.status();
    return nullptr;
  }
  return *std::move(engine);
}

TEST(EncoderBlocksTest, AnswersAreThoseOfPaddedSources) {
  const auto padded = MakeEngine(SearchPlace::kHost);
  const auto blocks = MakeBlockEngine(SmallEngine(SearchPlace::kDevice));
  for (SequenceId id = 1; id <= 100; ++id) {
    const SequenceInput input = AnySequence(id);
    ASSERT_TRUE(SameAnswers(Decode(*blocks, input).hypotheses, Decode(*padded, input).hypotheses))
        << id;
  }
}

TEST(EncoderBlocksTest, AnswersDoNotDependOnTheOtherSourcesOfACall) {
  const auto padded = MakeEngine(SearchPlace::kHost);
  const auto blocks = MakeBlockEngine(SmallEngine(SearchPlace::kDevice));
  std::mt19937 random(5);
  const auto results = DecodeInBatches(*blocks, 200, random);
  EXPECT_GT(results.size(), 100);
  for (const auto& [id, hypotheses] : results) {
    ASSERT_TRUE(SameAnswers(hypotheses, Decode(*padded, AnySequence(id)).hypotheses)) << id;
  }
}

// The encoder cache after calls with so many of the sources each, without that of the padding.
std::vector<at::Tensor> CacheAfter(const std::vector<EncoderSource>& sources, int blocks,
                                   size_t in_call) {
  auto model = ScriptedModel::Load(BlocksBundle().model_file(), at::kCPU, ComputeType::kFloat32);
  if (!model.ok()) {
    ADD_FAILURE() << model.status();
    return {};
  }
  const ThreadModes modes;
  const std::vector<at::Tensor> layers = model->NewEncoderCache(blocks + 1, kBlockTokens);
  BlockEncoder encoder(*model, layers, /*source_blocks=*/3, /*pad=*/1, /*time_gemms=*/false);
  const std::span<const EncoderSource> all = sources;
  for (size_t i = 0; i < all.size(); i += in_call) {
    encoder.Encode(all.subspan(i, std::min(in_call, all.size() - i)));
  }
  std::vector<at::Tensor> found;
  for (const at::Tensor& layer : layers)
    found.push_back(layer.narrow(0, kPaddingBlock + 1, blocks).clone());
  return found;
}

// The whole cache, also behind a source in its last block: a bucket's padding changes nothing.
TEST(EncoderBlocksTest, CacheHasTheSameBitsAfterCallsOfAnySize) {
  std::mt19937 random(6);
  std::vector<EncoderSource> sources(300);
  std::vector<int32_t> places;
  for (EncoderSource& source : sources) {
    for (int i = random() % 39; i > 0; --i) source.tokens.push_back(4 + random() % 41);
    source.tokens.push_back(2);
    for (int i = BlocksFor(std::ssize(source.tokens)); i > 0; --i) {
      source.blocks.push_back(0);
      places.push_back(kPaddingBlock + 1 + static_cast<int32_t>(places.size()));
    }
  }
  const int blocks = static_cast<int>(places.size());
  ASSERT_GT(blocks, BlockEncoder::kMaxBlocks) << "one call does not take them all";
  std::shuffle(places.begin(), places.end(), random);
  for (EncoderSource& source : sources) {
    for (int32_t& block : source.blocks) {
      block = places.back();
      places.pop_back();
    }
  }
  const std::vector<at::Tensor> alone = CacheAfter(sources, blocks, 1);
  ASSERT_EQ(alone.size(), 2);
  EXPECT_TRUE(alone[0].abs().sum().item<float>() > 0);
  for (size_t in_call : {2, 3, 7, 50, 300}) {
    const std::vector<at::Tensor> together = CacheAfter(sources, blocks, in_call);
    for (size_t layer = 0; layer < alone.size(); ++layer) {
      EXPECT_TRUE(together[layer].equal(alone[layer])) << in_call << " sources in a call";
    }
  }
}

TEST(EncoderBlocksTest, FailedCallEndsOnlyItsSequences) {
  if (SmallEngine(SearchPlace::kDevice).device != Device::kCpu)
    GTEST_SKIP() << "a graph cannot throw";
  const auto blocks = MakeBlockEngine(SmallEngine(SearchPlace::kDevice));
  SequenceInput good = AnySequence(1), bad = AnySequence(2);
  bad.source = {5, TinyModel::kStopper, 2};
  ASSERT_THAT(blocks->Add({&good, 1}), IsOk());
  ASSERT_THAT(blocks->Add({&bad, 1}), IsOk());
  std::map<SequenceId, SequenceEvent> last;
  while (blocks->sequences() > 0) {
    auto events = blocks->Step();
    ASSERT_THAT(events, IsOk());
    for (SequenceEvent& event : *events) {
      if (event.finished) last[event.id] = std::move(event);
    }
  }
  EXPECT_THAT(last[2].status,
              StatusIs(absl::StatusCode::kInternal, HasSubstr("the stopper is in the source")));
  EXPECT_TRUE(
      SameAnswers(last[1].hypotheses, Decode(*MakeEngine(SearchPlace::kHost), good).hypotheses));
}

TEST(EncoderBlocksTest, CallsHaveFewSizes) {
  EXPECT_THAT(CallSizes(1), ElementsAre(1));
  EXPECT_THAT(CallSizes(20), ElementsAre(1, 2, 3, 4, 6, 8, 12, 16, 20));
  EXPECT_EQ(CallSizes(BlockEncoder::kMaxBlocks).size(), 16);
  EXPECT_LE(CallSizes(1 << 16).size(), 32);
  const std::vector<int> sizes = CallSizes(BlockEncoder::kMaxBlocks);
  for (size_t i = 1; i < sizes.size(); ++i) {
    EXPECT_LT(sizes[i - 1], sizes[i]);
    EXPECT_LE(sizes[i], 2 * sizes[i - 1]);
  }
}

}  // namespace
}  // namespace linnet::model
