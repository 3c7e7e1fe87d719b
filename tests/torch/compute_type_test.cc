// Compute types of the engine, compared with torch.
#include "model/torch/module/compute_type.h"

#include <ATen/ATen.h>
#include <ATen/Version.h>
#include <ATen/cpu/Utils.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <cmath>
#include <vector>

#include "model/ops/pack_linear.h"
#include "model/torch/torch_engine.h"
#include "tests/support/status_matchers.h"
#include "tests/torch/tiny_model.h"

namespace linnet::model {
namespace {

using ::linnet::IsOk;
using ::linnet::StatusIs;
using ::linnet::model::testing::TinyBundle;

// Compares with the processor's flags, unless ATEN_CPU_CAPABILITY lowers the instruction set.
TEST(ComputeTypeTest, AutoIsInt8WithVnniAndFloat32Otherwise) {
  const bool multiplies = at::get_cpu_capability() == "AVX512" &&
                          at::cpu::get_cpu_capabilities().at("avx512_vnni").toBool();
  EXPECT_THAT(ResolveComputeType(ComputeType::kAuto, Device::kCpu),
              IsOkAndHolds(multiplies ? ComputeType::kInt8 : ComputeType::kFloat32));
  EXPECT_THAT(ResolveComputeType(ComputeType::kAuto, Device::kCuda),
              IsOkAndHolds(ComputeType::kFloat16));
}

TEST(ComputeTypeTest, RefusesWeightsBeyondFloat16ByName) {
  const at::Tensor weight = at::tensor({1.0f, -65504.0f});
  EXPECT_THAT(CheckRange("decoder.0.weight", weight, at::kHalf), IsOk());
  const at::Tensor wide = at::tensor({1.0f, -70000.0f});
  EXPECT_THAT(CheckRange("decoder.0.weight", wide, at::kHalf),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       ::testing::HasSubstr("decoder.0.weight has a value of 70000, float16 holds "
                                            "at most 65504: use bfloat16 or float32")));
  EXPECT_THAT(CheckRange("decoder.0.weight", wide, at::kBFloat16), IsOk());
  EXPECT_THAT(CheckRange("empty", at::empty({0}), at::kHalf), IsOk());
}

TEST(ComputeTypeTest, SumsHalfPrecisionGemmsInFloat32) {
  using Option = at::CuBLASReductionOption;
  TorchEngineOptions options = {.threads = 1, .rows = 8, .encoder_cache_tokens = 64};
  ASSERT_THAT(MakeTorchEngine(TinyBundle(), options), IsOk());
  EXPECT_EQ(at::globalContext().allowFP16ReductionCuBLAS(),
            Option::DisallowReducedPrecisionAllowSplitK);
  EXPECT_EQ(at::globalContext().allowBF16ReductionCuBLAS(),
            Option::DisallowReducedPrecisionAllowSplitK);
  options.batch_invariant = true;
  ASSERT_THAT(MakeTorchEngine(TinyBundle(), options), IsOk());
  EXPECT_EQ(at::globalContext().allowFP16ReductionCuBLAS(),
            Option::DisallowReducedPrecisionDisallowSplitK);
}

const std::vector<TokenId> kSource = {9, 30, 17, 5, 41, 8, 8, 23, 12, 2};
const std::vector<TokenId> kTarget = {5, 6, 7, 8, 9, 10, 11, 12, 40, 33, 21, 4, 4, 19, 28, 15};

// Log-probabilities of the target, from the engine.
std::vector<float> EngineScores(ComputeType compute) {
  auto engine = MakeTorchEngine(
      TinyBundle(), {.compute = compute, .threads = 2, .rows = 8, .encoder_cache_tokens = 64});
  EXPECT_THAT(engine, IsOk());
  SequenceInput input;
  input.source = kSource;
  input.prefix = kTarget;
  input.options.beam_size = 1;
  input.options.max_target_tokens = static_cast<int>(kTarget.size());
  EXPECT_THAT((*engine)->Add({&input, 1}), IsOk());
  while (true) {
    const auto events = (*engine)->Step();
    EXPECT_THAT(events, IsOk());
    if (!events.ok() || events->empty()) return {};
    if (!events->front().finished) continue;
    std::vector<float> scores = events->front().hypotheses.at(0).token_scores;
    scores.resize(kTarget.size());  // without the end token
    return scores;
  }
}

// The same from the module, loaded and converted by torch: one source without padding in one block,
// one row, and torch's log_softmax.
std::vector<float> ModuleScores(at::ScalarType type) {
  const at::NoGradGuard no_grad;
  torch::jit::Module module = torch::jit::load(TinyBundle().model_file().string());
  module.to(type);
  const auto list = [&](const char* method, std::vector<c10::IValue> arguments) {
    return module.get_method(method)(std::move(arguments)).toTensorVector();
  };
  const auto tokens = static_cast<int32_t>(kSource.size());
  const at::Tensor source = at::tensor(at::ArrayRef<TokenId>(kSource), at::kLong).unsqueeze(0);
  const auto one = [](int64_t value) { return at::full({1}, value, at::kInt); };
  const std::vector<at::Tensor> encoder_cache = list("new_encoder_cache", {1, tokens}),
                                state = list("new_state", {1}),
                                encoded = list("encode", {source, one(tokens)});
  for (size_t layer = 0; layer < encoder_cache.size(); ++layer)
    encoder_cache[layer].copy_(encoded[layer]);
  std::vector<float> scores;
  TokenId last = 2;
  for (size_t position = 0; position < kTarget.size(); ++position) {
    const at::Tensor logits =
        module
            .get_method("step")({at::full({1}, last, at::kLong), one(position),
                                 at::zeros({1, state[0].size(0)}, at::kInt),
                                 at::zeros({1, 1}, at::kInt), one(tokens), encoder_cache, state})
            .toTensor();
    last = kTarget[position];
    scores.push_back(at::log_softmax(logits.to(at::kFloat), -1)[0][last].item<float>());
  }
  return scores;
}

void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected, float bound) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], bound) << "token " << i;
  }
}

TEST(ComputeTypeTest, Float32EqualsTheModule) {
  // 1e-4: sums of float32 in another order, through all layers, of scores down to -10.
  ExpectNear(EngineScores(ComputeType::kFloat32), ModuleScores(at::kFloat), 1e-4f);
}

TEST(ComputeTypeTest, RefusesBfloat16WhereTheProcessorHasNoGemmForIt) {
  const auto resolved = ResolveComputeType(ComputeType::kBfloat16, Device::kCpu);
  if (ops::HasBfloat16Gemm()) {
    EXPECT_THAT(resolved, IsOkAndHolds(ComputeType::kBfloat16));
  } else {
    EXPECT_THAT(resolved.status(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         ::testing::HasSubstr("AVX512-BF16, AMX-BF16 or AVX-NE-CONVERT, and this "
                                              "one has none of them: use float32 or int8")));
  }
  EXPECT_THAT(ResolveComputeType(ComputeType::kBfloat16, Device::kCuda),
              IsOkAndHolds(ComputeType::kBfloat16));
}

TEST(ComputeTypeTest, Bfloat16EqualsTheModule) {
  if (!ops::HasBfloat16Gemm()) GTEST_SKIP() << "this processor has no gemm in bfloat16";
  const std::vector<float> expected = ModuleScores(at::kBFloat16);
  ASSERT_NE(expected, ModuleScores(at::kFloat));
  // The engine runs the same operators with the same rounding. Kernels for one row and for the
  // engine's eight rows may differ in the last bit of a logit, 2^-6 for values of 2 to 4, and once
  // more in the sum.
  ExpectNear(EngineScores(ComputeType::kBfloat16), expected, 0x1p-5f);
}

TEST(ComputeTypeTest, Int8IsCloseToTheModuleInFloat32) {
  const std::vector<float> expected = ModuleScores(at::kFloat);
  const std::vector<float> actual = EngineScores(ComputeType::kInt8);
  ASSERT_NE(actual, expected);
  // Seven bits of each weight and value are 1 % of a product, through layers whose random weights
  // amplify it. (A wrong gemm would give unrelated scores, between 0 and -10.)
  ExpectNear(actual, expected, 0.5f);
}

}  // namespace
}  // namespace linnet::model
