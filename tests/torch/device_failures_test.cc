// A device decoder whose model fails: it drops the steps in flight, and the next answers are
// correct.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "model/ops/graph.h"
#include "model/ops/pack_linear.h"
#include "model/torch/torch_engine.h"
#include "tests/support/status_matchers.h"
#include "tests/torch/decoding.h"
#include "tests/torch/tiny_model.h"

namespace linnet::model {
namespace {

using ::linnet::IsOk;
using ::linnet::StatusIs;
using ::linnet::model::testing::AnySequence;
using ::linnet::model::testing::Decode;
using ::linnet::model::testing::DecodeInBatches;
using ::linnet::model::testing::MakeEngine;
using ::linnet::model::testing::SameAnswers;
using ::linnet::model::testing::SmallEngine;
using ::linnet::model::testing::ThrowingAlignBundle;
using ::linnet::model::testing::TinyBundle;
using ::linnet::model::testing::TinyModel;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The parts of a step, in order. When the last two throw, a device step is in flight.
enum class Part { kDeviceStep, kAlignmentPass, kHostStep };

// A sequence that throws in this part of a step, `after` steps after it was added.
SequenceInput Thrower(Part part, int after) {
  SequenceInput input;
  input.id = 100;
  input.source = {9, 8, 2};
  input.options = {.beam_size = 2, .min_target_tokens = 9, .max_target_tokens = 9};
  if (part == Part::kAlignmentPass) {
    // Longer than the target that the engine aligns in its warm-up.
    input.options.min_target_tokens = input.options.max_target_tokens = 6 + after;
    input.align = true;
    return input;
  }
  input.prefix.assign(after, 7);
  input.prefix.push_back(TinyModel::kThrower);
  if (part == Part::kHostStep) input.options.seed = 1;  // sampling
  return input;
}

// Runs two searches on the device, which are unfinished when the third one throws.
void FailInStep(Engine& engine, Part part, int before, int after) {
  std::vector<SequenceInput> running(2);
  for (int i = 0; i < 2; ++i) {
    running[i].id = 50 + i;
    running[i].source = {5 + i, 2};
    running[i].options = {.beam_size = 3, .min_target_tokens = 20, .max_target_tokens = 20};
  }
  ASSERT_THAT(engine.Add(running), IsOk());
  for (int i = 0; i < before; ++i) ASSERT_THAT(engine.Step(), IsOk());
  const SequenceInput thrower = Thrower(part, after);
  ASSERT_THAT(engine.Add({&thrower, 1}), IsOk());
  absl::Status status;
  while (engine.sequences() > 0) status = engine.Step().status();
  ASSERT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr("throw")));
  EXPECT_EQ(engine.rows_in_use(), 0);
}

TEST(DeviceFailuresTest, EngineRecoversFromThrowInAnyPartOfAStep) {
  const auto host = MakeEngine(SearchPlace::kHost);
  auto engine = MakeTorchEngine(ThrowingAlignBundle(), SmallEngine(SearchPlace::kDevice));
  ASSERT_THAT(engine, IsOk());
  std::mt19937 random(1);
  for (Part part : {Part::kDeviceStep, Part::kAlignmentPass, Part::kHostStep}) {
    for (int before : {0, 1, 2, 5}) {
      for (int after : {0, 1, 3}) {
        SCOPED_TRACE(::testing::Message() << static_cast<int>(part) << " " << before << after);
        FailInStep(**engine, part, before, after);
        const auto results = DecodeInBatches(**engine, 6, random);
        for (const auto& [id, hypotheses] : results) {
          ASSERT_TRUE(SameAnswers(hypotheses, Decode(*host, AnySequence(id)).hypotheses)) << id;
        }
      }
    }
  }
}

// Records two graphs and fails at the third.
class FailingRecorder final : public ops::GraphRecorder {
 public:
  static inline int made = 0, alive = 0;
  FailingRecorder() { ++made, ++alive; }
  ~FailingRecorder() override { --alive; }

  std::unique_ptr<ops::Graph> Record(c10::function_ref<void()>) override {
    struct Nothing final : ops::Graph {
      void Launch() override {}
    };
    if (++recorded_ == 3) throw std::runtime_error("operation not permitted in capture");
    return std::make_unique<Nothing>();
  }

 private:
  int recorded_ = 0;
};

TEST(DeviceFailuresTest, FailedRecordingMakesEngineWithoutGraphs) {
  ops::SetNewGraphRecorder(
      []() -> std::unique_ptr<ops::GraphRecorder> { return std::make_unique<FailingRecorder>(); });
  const auto engine = MakeEngine(SearchPlace::kDevice);
  ops::SetNewGraphRecorder(nullptr);
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(FailingRecorder::made, 1);
  EXPECT_EQ(FailingRecorder::alive, 0) << "the engine that began to record is gone";
  EXPECT_EQ(engine->info().search,
            "device, no graphs: recording a step of 28 rows failed: operation not permitted in "
            "capture");
  const auto host = MakeEngine(SearchPlace::kHost);
  for (SequenceId id = 1; id <= 5; ++id) {
    const SequenceInput input = AnySequence(id);
    EXPECT_TRUE(SameAnswers(Decode(*engine, input).hypotheses, Decode(*host, input).hypotheses));
  }
}

// For libraries that select a gemm kernel by the number of rows: oneDNN here, cuBLAS on a GPU.
TEST(BatchInvarianceTest, HoldsForLibraryGemms) {
  if (!ops::HasBfloat16Gemm()) GTEST_SKIP() << "this processor has no gemm in bfloat16";
  for (SearchPlace search : {SearchPlace::kHost, SearchPlace::kDevice}) {
    TorchEngineOptions options = SmallEngine(search);
    options.compute = ComputeType::kBfloat16;
    options.threads = 2;
    options.batch_invariant = true;
    auto engine = MakeTorchEngine(TinyBundle(), options);
    ASSERT_THAT(engine, IsOk());
    std::mt19937 random(4);
    for (const auto& [id, hypotheses] : DecodeInBatches(**engine, 60, random)) {
      ASSERT_TRUE(SameAnswers(hypotheses, Decode(**engine, AnySequence(id)).hypotheses)) << id;
    }
  }
}

}  // namespace
}  // namespace linnet::model
