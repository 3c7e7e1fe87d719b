// Requests that the engine refuses, and failures of the model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/torch/module/catch_torch_errors.h"
#include "model/torch/torch_engine.h"
#include "tests/support/status_matchers.h"
#include "tests/torch/tiny_model.h"

namespace linnet::model {
namespace {

using ::linnet::IsOk;
using ::linnet::StatusIs;
using ::linnet::model::testing::BundleOf;
using ::linnet::model::testing::TinyBundle;
using ::linnet::model::testing::TinyModel;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr TorchEngineOptions kSmall = {
    .compute = ComputeType::kFloat32, .threads = 2, .rows = 16, .encoder_cache_tokens = 160};

SequenceInput Sequence(SequenceId id, std::vector<TokenId> source) {
  SequenceInput input;
  input.id = id;
  input.source = std::move(source);
  input.options.beam_size = 2;
  input.options.max_target_tokens = 6;
  return input;
}

class TorchEngineErrorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto engine = MakeTorchEngine(TinyBundle(), kSmall);
    ASSERT_THAT(engine, IsOk());
    engine_ = *std::move(engine);
  }

  std::unique_ptr<Engine> engine_;
};

TEST_F(TorchEngineErrorsTest, SourceOfNaNFailsOnlyItsSequence) {
  ASSERT_THAT(
      engine_->Add(std::vector{Sequence(1, {9, 8, 2}), Sequence(2, {9, TinyModel::kMarked, 2}),
                               Sequence(3, {5, 2})}),
      IsOk());
  const auto events = engine_->Step();
  ASSERT_THAT(events, IsOk());
  ASSERT_EQ(events->size(), 3);
  EXPECT_THAT((*events)[0].status, IsOk());
  EXPECT_THAT((*events)[1].status, StatusIs(absl::StatusCode::kInternal));
  EXPECT_TRUE((*events)[1].finished);
  EXPECT_THAT((*events)[2].status, IsOk());
  EXPECT_EQ(engine_->sequences(), 2);
  EXPECT_EQ(engine_->rows_in_use(), 4);
  while (engine_->sequences() > 0) {
    const auto later = engine_->Step();
    ASSERT_THAT(later, IsOk());
    for (const SequenceEvent& event : *later) EXPECT_THAT(event.status, IsOk());
  }
}

TEST_F(TorchEngineErrorsTest, FailedStepLosesSequencesButNotTheEngine) {
  SequenceInput thrower = Sequence(2, {9, 2});
  thrower.prefix = {TinyModel::kThrower};
  ASSERT_THAT(engine_->Add(std::vector{Sequence(1, {9, 8, 2}), thrower}), IsOk());
  ASSERT_THAT(engine_->Step(), IsOk());
  const auto failed = engine_->Step();
  EXPECT_THAT(failed.status(),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("a decoder step failed"),
                             HasSubstr("the thrower is in the target"), Not(HasSubstr("\n")))));
  EXPECT_EQ(engine_->sequences(), 0);
  EXPECT_EQ(engine_->rows_in_use(), 0);
  ASSERT_THAT(engine_->Add(std::vector{Sequence(3, {9, 8, 2})}), IsOk());
  EXPECT_THAT(engine_->Step(), IsOk());
}

TEST_F(TorchEngineErrorsTest, FailedPartOfManyRowsFailsTheStep) {
  TorchEngineOptions options = kSmall;
  options.rows = 200;
  options.encoder_cache_tokens = 3200;
  const auto engine = MakeTorchEngine(TinyBundle(), options);
  ASSERT_THAT(engine, IsOk());
  std::vector<SequenceInput> inputs;
  for (int id = 1; id <= 60; ++id) inputs.push_back(Sequence(id, {9, 8, 2}));
  inputs.back().prefix = {TinyModel::kThrower};
  ASSERT_THAT((*engine)->Add(inputs), IsOk());
  ASSERT_THAT((*engine)->Step(), IsOk());
  EXPECT_THAT((*engine)->Step().status(),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("a decoder step failed"),
                             HasSubstr("the thrower is in the target"), Not(HasSubstr("\n")))));
  EXPECT_EQ((*engine)->sequences(), 0);
}

TEST_F(TorchEngineErrorsTest, FailedEncoderAddsNoSequence) {
  ASSERT_THAT(engine_->Add(std::vector{Sequence(1, {9, 8, 2})}), IsOk());
  EXPECT_THAT(engine_->Add(std::vector{Sequence(2, {9, 2}), Sequence(3, {TinyModel::kStopper, 2})}),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("the stopper is in the source")));
  EXPECT_EQ(engine_->sequences(), 1) << "the running sequence keeps running";
  EXPECT_EQ(engine_->rows_in_use(), 2);
  EXPECT_THAT(engine_->Step(), IsOk());
}

TEST_F(TorchEngineErrorsTest, RefusesSequencesThatNeverFit) {
  const auto expect = [&](const SequenceInput& input, const std::string& message) {
    EXPECT_THAT(engine_->Check(input),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  EXPECT_THAT(engine_->Check(Sequence(1, {9, 2})), IsOk());
  expect(Sequence(1, {}), "the source is empty");
  expect(Sequence(1, {9, 8}), "the source ends with token 8, it must end with the end token 2");
  expect(Sequence(1, {48, 2}), "source token 48 is outside the vocabulary of 48 tokens");
  expect(Sequence(1, {-1, 2}), "source token -1 is outside");
  std::vector<TokenId> longest(40, 9);
  longest.back() = 2;
  EXPECT_THAT(engine_->Check(Sequence(1, longest)), IsOk());
  longest.insert(longest.begin(), 9);
  expect(Sequence(1, longest), "the source has 41 tokens, this model reads at most 40");

  SequenceInput input = Sequence(1, {9, 2});
  input.prefix = {48};
  expect(input, "prefix token 48 is outside");
  input.prefix = {5, 2};
  expect(input, "prefix token 2 is the end token");
  input.prefix = {1};
  expect(input, "prefix token 1 is the padding token");
  input.prefix = {5, 5, 5, 5, 5, 5, 5};
  expect(input, "the prefix has 7 tokens, max_target_tokens is 6");
  input.prefix = {};
  input.options.beam_size = 17;
  expect(input, "beam_size is 17, it must be between 1 and 16");
}

TEST_F(TorchEngineErrorsTest, AllowsVocabulariesOfDifferentSizes) {
  Bundle bundle = TinyBundle();
  bundle.manifest.mutable_vocabulary()->set_source_size(30);
  const auto engine =
      MakeTorchEngine(bundle, {.threads = 1, .rows = 4, .encoder_cache_tokens = 64});
  ASSERT_THAT(engine, IsOk());
  SequenceInput input = Sequence(1, {29, 2});
  input.prefix = {47};
  EXPECT_THAT((*engine)->Check(input), IsOk());
  EXPECT_THAT((*engine)->Check(Sequence(1, {30, 2})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("source token 30 is outside the vocabulary of 30 tokens")));
}

TEST_F(TorchEngineErrorsTest, AddWithoutRoomIsAnErrorAndAddsNothing) {
  std::vector<SequenceInput> many;
  for (int i = 1; i <= 9; ++i) many.push_back(Sequence(i, {9, 2}));
  EXPECT_FALSE(engine_->HasRoom(many));
  EXPECT_THAT(engine_->Add(many), StatusIs(absl::StatusCode::kInternal, HasSubstr("no room")));
  EXPECT_EQ(engine_->rows_in_use(), 0);
}

TEST(TorchEngineMakingTest, RefusesOptionsOutsideTheirLimits) {
  const auto expect = [&](TorchEngineOptions options, const std::string& message) {
    EXPECT_THAT(MakeTorchEngine(TinyBundle(), options).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
    EXPECT_THAT(TorchEngineInfo(TinyBundle(), options).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  TorchEngineOptions options = kSmall;
  options.rows = 0;
  expect(options, "rows is 0");
  options = kSmall;
  options.threads = -1;
  expect(options, "threads is -1");
  options = kSmall;
  options.encoder_cache_tokens = 39;
  expect(options,
         "encoder_cache_tokens is 39, it must be between 40 (the longest source of this model)");
}

TEST(TorchEngineMakingTest, ParsesNamesAndListsKnownOnes) {
  EXPECT_EQ(*ParseDevice("cuda"), Device::kCuda);
  EXPECT_EQ(*ParseComputeType("bfloat16"), ComputeType::kBfloat16);
  EXPECT_THAT(ParseDevice("tpu").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no device \"tpu\": there are cpu and cuda")));
  EXPECT_EQ(*ParseComputeType("int8"), ComputeType::kInt8);
  EXPECT_THAT(ParseComputeType("int4").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"int4\" is not built: there are auto, float32, bfloat16")));
}

TEST(TorchEngineMakingTest, RefusesFloat16OnTheCpu) {
  TorchEngineOptions options = kSmall;
  options.compute = ComputeType::kFloat16;
  EXPECT_THAT(MakeTorchEngine(TinyBundle(), options).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("there are auto, float32, bfloat16 and int8")));
}

TEST(TorchEngineMakingTest, RefusesFileThatIsNotAModule) {
  Bundle bundle = TinyBundle();
  bundle.manifest.set_model_file("missing.pt");
  EXPECT_THAT(MakeTorchEngine(bundle, kSmall).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("missing.pt")));
}

TEST(TorchEngineMakingTest, RefusesModuleThatBreaksTheContract) {
  EXPECT_THAT(MakeTorchEngine(BundleOf("def step(self, x):\n    return x\n"), kSmall).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("no method encode: export the bundle")));
  EXPECT_THAT(
      MakeTorchEngine(BundleOf("def encode(self, source):\n    return source\n"), kSmall).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("method encode takes 1 arguments, the engine gives it 2")));
  Bundle bundle = TinyBundle();
  bundle.manifest.mutable_vocabulary()->set_size(50);
  EXPECT_THAT(MakeTorchEngine(bundle, kSmall).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("50 tokens]: [1, 48]")));
}

// Adds an operator to those of Linnet for as long as the library lives.
torch::Library WithOperator(const char* schema) {
  torch::Library library(torch::Library::FRAGMENT, "linnet", std::nullopt, __FILE__, __LINE__);
  library.def(schema);
  return library;
}

// A bundle of a version of Linnet that has this operator.
Bundle BundleOfVersionWith(const char* schema, const char* call) {
  const torch::Library library = WithOperator(schema);
  return BundleOf(
      absl::StrCat("def encode(self, source: Tensor, lengths: Tensor) -> List[Tensor]:\n"
                   "    x = torch.tanh(source)\n    return [",
                   call, "]\n"));
}

TEST(TorchEngineMakingTest, NamesTheOperatorThatOnlyANewerVersionHas) {
  const Bundle bundle = BundleOfVersionWith("later(Tensor x) -> Tensor", "linnet.later(x)");
  EXPECT_THAT(MakeTorchEngine(bundle, kSmall).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("cannot load "),
                             HasSubstr(": the model uses the operator linnet::later, which this "
                                       "version of Linnet does not have: a newer version wrote "
                                       "the bundle; install that version, or export the model "
                                       "again with this one"),
                             Not(HasSubstr("\n")), Not(HasSubstr("return")))));
}

TEST(TorchEngineMakingTest, NamesTheOperatorThatAnotherVersionCallsOtherwise) {
  const Bundle bundle =
      BundleOfVersionWith("changed(Tensor x, int n) -> Tensor", "linnet.changed(x, 2)");
  const torch::Library library = WithOperator("changed(Tensor x) -> Tensor");
  EXPECT_THAT(MakeTorchEngine(bundle, kSmall).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(": the model calls the operator linnet::changed with "
                                       "arguments that this version of Linnet does not take: "
                                       "another version wrote the bundle; install that version, "
                                       "or export the model again with this one"),
                             Not(HasSubstr("\n")), Not(HasSubstr("return")))));
}

// On a machine with a GPU the CUDA tests cover this.
TEST(TorchEngineMakingTest, ReportsMissingGpu) {
  TorchEngineOptions options = kSmall;
  options.device = Device::kCuda;
  options.compute = ComputeType::kAuto;
  const auto engine = MakeTorchEngine(TinyBundle(), options);
  if (engine.ok()) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_THAT(engine.status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("device cuda was asked for, but ")));
}

// PyTorch's messages: TorchScript keeps only the text of an exception.
TEST(StatusOfExceptionTest, MarksErrorsThatLoseTheDevice) {
  for (const char* error :
       {"CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously "
        "reported at some other API call",
        "The following operation failed in the TorchScript interpreter.\nTraceback of "
        "TorchScript (most recent call last):\n  File \"x.py\", line 3\nRuntimeError: CUDA error: "
        "an illegal memory access was encountered\n",
        "CUDA error: unspecified launch failure", "CUDA error: misaligned address"}) {
    EXPECT_TRUE(IsDeviceLost(StatusOfException("a step", std::runtime_error(error)))) << error;
  }
  for (const char* error :
       {"CUDA error: invalid configuration argument", "index out of range", "misaligned address",
        "CUDA out of memory. Tried to allocate 2.00 GiB"}) {
    const absl::Status status = StatusOfException("a step", std::runtime_error(error));
    EXPECT_FALSE(IsDeviceLost(status)) << error;
    EXPECT_FALSE(status.ok());
  }
}

constexpr char kListing[] =
    "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript "
    "(most "
    "recent call last):\n  File \"x.py\", line 3\n    <--- HERE\n";

TEST(StatusOfExceptionTest, RecognisesTheLackOfMemoryInAModule) {
  const absl::Status status = StatusOfException(
      "a step", std::runtime_error(absl::StrCat(
                    kListing, "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               "a step: RuntimeError: CUDA out of memory. Tried to allocate 2.00 "
                               "GiB."));
}

TEST(StatusOfExceptionTest, NamesTheCauseOfAnErrorOfSeveralLines) {
  const absl::Status status = StatusOfException(
      "a step", std::runtime_error(
                    absl::StrCat(kListing,
                                 "RuntimeError: CUDA error: invalid configuration argument\nCUDA "
                                 "kernel errors might be asynchronously reported\nCompile with "
                                 "`TORCH_USE_CUDA_DSA` to enable device-side assertions.\n")));
  EXPECT_EQ(status.message(), "a step: RuntimeError: CUDA error: invalid configuration argument");
}

TEST(StatusOfExceptionTest, CopiesKeepTheMark) {
  const absl::Status lost =
      StatusOfException("a step", std::runtime_error("CUDA error: invalid program counter"));
  const absl::StatusOr<int> result = lost;
  EXPECT_TRUE(IsDeviceLost(result.status()));
  EXPECT_FALSE(IsDeviceLost(absl::InternalError(lost.message())));
  EXPECT_FALSE(IsDeviceLost(absl::OkStatus()));
}

}  // namespace
}  // namespace linnet::model
