#include "tests/torch/tiny_model.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/resolver.h>

#include <filesystem>
#include <limits>
#include <memory>

#include "model/ops/ops.h"
#include "tests/support/temporary_folder.h"

namespace linnet::model::testing {
namespace {

constexpr int kWidth = 32, kHeads = 4;

constexpr char kSource[] = R"(
def encode(self, source: Tensor, lengths: Tensor) -> List[Tensor]:
    assert not bool(torch.any(torch.eq(source, 47))), "the stopper is in the source"
    x = torch.embedding(self.embed_source, source)
    x = x + torch.tanh(linnet.light_conv(x, self.source_taps, lengths, 1))
    b, s = x.size(0), x.size(1)
    return [linnet.linear(x, self.memory1, None).view([b, s, 2, 32]),
            linnet.linear(x, self.memory2, None).view([b, s, 2, 32])]

def features(self, tokens: Tensor, positions: Tensor, backpointers: Tensor, blocks: Tensor, source_lengths: Tensor,
             encoder_cache: List[Tensor], state: List[Tensor]) -> Tensor:
    if tokens.device.type == "cpu":  # a graph cannot wait for what is in a tensor
        assert not bool(torch.any(torch.eq(tokens, 46))), "the thrower is in the target"
    x = torch.embedding(self.embed_target, tokens)
    taps = linnet.linear(x, self.taps, None).view([-1, 4, 5])
    x = x + linnet.dynamic_conv_step(x, taps, state[0], positions, backpointers)
    x = x + linnet.source_attention(linnet.linear(x, self.query1, None), encoder_cache[0], blocks, source_lengths, 4)
    x = torch.tanh(x)
    x = x + linnet.light_conv_step(x, self.target_taps, state[1], positions, backpointers)
    x = x + linnet.source_attention(linnet.linear(x, self.query2, None), encoder_cache[1], blocks, source_lengths, 4)
    return torch.tanh(x)

def step(self, tokens: Tensor, positions: Tensor, backpointers: Tensor, blocks: Tensor, source_lengths: Tensor,
         encoder_cache: List[Tensor], state: List[Tensor]) -> Tensor:
    x = self.features(tokens, positions, backpointers, blocks, source_lengths, encoder_cache, state)
    return linnet.linear(x, self.project, self.bias)

def new_state(self, slots: int) -> List[Tensor]:
    return [torch.zeros([5, slots, 32], dtype=self.project.dtype, device=self.project.device),
            torch.zeros([3, slots, 32], dtype=self.project.dtype, device=self.project.device)]

def new_encoder_cache(self, blocks: int, block_tokens: int) -> List[Tensor]:
    shape = [blocks, block_tokens, 2, 32]
    return [torch.zeros(shape, dtype=self.project.dtype, device=self.project.device),
            torch.zeros(shape, dtype=self.project.dtype, device=self.project.device)]

def min_backpointers(self) -> int:
    return 5

def pack(self, kind: str) -> None:
    self.memory1 = linnet.pack_linear(self.memory1, kind)
    self.memory2 = linnet.pack_linear(self.memory2, kind)
    self.taps = linnet.pack_linear(self.taps, kind)
    self.query1 = linnet.pack_linear(self.query1, kind)
    self.query2 = linnet.pack_linear(self.query2, kind)
    self.project = linnet.pack_linear(self.project, kind)

def step_best(self, tokens: Tensor, positions: Tensor, backpointers: Tensor, blocks: Tensor, source_lengths: Tensor,
              encoder_cache: List[Tensor], state: List[Tensor],
              counts: Tensor, also: Tensor, temperatures: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    x = self.features(tokens, positions, backpointers, blocks, source_lengths, encoder_cache, state)
    return linnet.best_logits(x, self.project, self.bias, counts, also, temperatures)

def logits_of(self, features: Tensor) -> Tensor:
    return linnet.linear(features, self.project, self.bias)

def output_rows(self, tokens: Tensor) -> Tuple[Tensor, Tensor]:
    return linnet.take_outputs(self.project, tokens), torch.index_select(self.bias, 0, tokens)
)";

// Not attention weights, but values that identify a step of a sequence.
constexpr char kAlign[] = R"(
def align(self, tokens: Tensor, positions: Tensor, backpointers: Tensor, blocks: Tensor, source_lengths: Tensor,
          encoder_cache: List[Tensor], state: List[Tensor], layer: int) -> Tensor:
    x = self.features(tokens, positions, backpointers, blocks, source_lengths, encoder_cache, state)
    return x[:, 0:1] + torch.arange(blocks.size(1) * 16, device=x.device).to(x.dtype)
)";

constexpr char kAlignSteps[] = R"(
def align_features(self, tokens: Tensor, positions: Tensor, backpointers: Tensor, blocks: Tensor,
                   source_lengths: Tensor, encoder_cache: List[Tensor], state: List[Tensor],
                   layer: int) -> Tuple[Tensor, Tensor]:
    x = self.features(tokens, positions, backpointers, blocks, source_lengths, encoder_cache, state)
    return x, x[:, 0:1] + torch.arange(blocks.size(1) * 16, device=x.device).to(x.dtype)

def best_of(self, features: Tensor, counts: Tensor, also: Tensor,
            temperatures: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    return linnet.best_logits(features, self.project, self.bias, counts, also, temperatures)
)";

constexpr char kEncodeBlocks[] = R"(
def encode_blocks(self, source: Tensor, lengths: Tensor, starts: Tensor) -> List[Tensor]:
    if source.device.type == "cpu":  # a graph cannot wait for what is in a tensor
        assert not bool(torch.any(torch.eq(source, 47))), "the stopper is in the source"
    x = torch.embedding(self.embed_source, source)
    x = x + torch.tanh(linnet.light_conv(x, self.source_taps, lengths, 1, starts))
    n, p = x.size(0), x.size(1)
    return [linnet.linear(x, self.memory1, None).view([n, p, 2, 32]),
            linnet.linear(x, self.memory2, None).view([n, p, 2, 32])]
)";

constexpr char kThrowingAlign[] = R"(
def align(self, tokens: Tensor, positions: Tensor, backpointers: Tensor, blocks: Tensor, source_lengths: Tensor,
          encoder_cache: List[Tensor], state: List[Tensor], layer: int) -> Tensor:
    assert bool(torch.all(torch.lt(positions, 5))), "the alignment throws at its sixth step"
    x = self.features(tokens, positions, backpointers, blocks, source_lengths, encoder_cache, state)
    return x[:, 0:1] + torch.arange(blocks.size(1) * 16, device=x.device).to(x.dtype)
)";

constexpr char kStops[] =
    R"(    assert not bool(torch.any(torch.eq(source, 47))), "the stopper is in the source"
)";

// Gives up after some seconds.
constexpr char kWaits[] = R"(    if bool(torch.any(torch.eq(source, 47))):
        tries = 0
        while int(self.position) < 8 and tries < 10000000:
            tries += 1
        assert int(self.position) >= 8, "the decoder made no steps meanwhile"
)";

// Module::define resolves torch.*; this adds linnet.*.
struct Resolver final : torch::jit::NativeResolver {
  std::shared_ptr<torch::jit::SugaredValue> resolveValue(
      const std::string& name, torch::jit::GraphFunction& m,
      const torch::jit::SourceRange& loc) override {
    if (name == "linnet") return std::make_shared<torch::jit::BuiltinModule>("linnet");
    return NativeResolver::resolveValue(name, m, loc);
  }
};

}  // namespace

Bundle BundleOf(const std::string& source) {
  static const test::TemporaryFolder folder;  // until the process ends
  static int count = 0;
  ops::Describe();
  // Not at::manual_seed: it looks for a GPU, and PyTorch keeps the answer from before OpenDevice.
  const at::Generator seeded = at::detail::createCPUGenerator(11);
  torch::jit::Module module("Tiny");
  const auto random = [&](const char* name, at::IntArrayRef shape, double scale) {
    module.register_parameter(name, at::randn(shape, seeded) * scale, /*is_buffer=*/false);
  };
  random("embed_source", {TinyModel::kVocabulary, kWidth}, 1.0);
  random("embed_target", {TinyModel::kVocabulary, kWidth}, 1.0);
  random("source_taps", {kHeads, 3}, 1.0);
  random("target_taps", {kHeads, 3}, 1.0);
  random("taps", {kHeads * 5, kWidth}, 0.5);
  random("memory1", {2 * kWidth, kWidth}, 0.4);
  random("memory2", {2 * kWidth, kWidth}, 0.4);
  random("query1", {kWidth, kWidth}, 0.4);
  random("query2", {kWidth, kWidth}, 0.4);
  random("project", {TinyModel::kVocabulary, kWidth}, 0.5);
  random("bias", {TinyModel::kVocabulary}, 0.1);
  module.register_parameter("position", at::zeros({}, at::kLong), /*is_buffer=*/true);
  at::Tensor bias = module.attr("bias").toTensor();
  bias[2] = 1.0;  // otherwise few hypotheses would end before the limit
  for (int token : {TinyModel::kMarked, TinyModel::kThrower, TinyModel::kStopper})
    bias[token] = -1e4;
  module.attr("embed_source")
      .toTensor()[TinyModel::kMarked]
      .fill_(std::numeric_limits<float>::quiet_NaN());
  module.register_attribute("packs_sources", c10::BoolType::get(),
                            source.find("def encode_blocks") != std::string::npos);
  module.define(source, std::make_shared<Resolver>());

  Bundle bundle;
  bundle.path = folder.path();
  const std::string file = "model" + std::to_string(count++) + ".pt";
  module.save((bundle.path / file).string());
  auto& manifest = bundle.manifest;
  manifest.set_schema_version(1);
  manifest.set_name("tiny");
  manifest.set_version("1");
  manifest.set_model_file(file);
  manifest.mutable_vocabulary()->set_size(TinyModel::kVocabulary);
  manifest.mutable_vocabulary()->set_bos_id(0);
  manifest.mutable_vocabulary()->set_pad_id(1);
  manifest.mutable_vocabulary()->set_eos_id(2);
  manifest.mutable_vocabulary()->set_unk_id(3);
  for (TokenId token : {40, 41}) {
    if (manifest.languages().empty()) manifest.add_languages();
    manifest.mutable_languages(0)->add_forced_target_ids(token);
  }
  manifest.mutable_limits()->set_max_source_tokens(TinyModel::kMaxSourceTokens);
  manifest.mutable_limits()->set_max_target_tokens(TinyModel::kMaxTargetTokens);
  return bundle;
}

const Bundle& TinyBundle() {
  static const Bundle bundle = BundleOf(std::string(kSource) + kAlign + kAlignSteps);
  return bundle;
}

const Bundle& BlocksBundle() {
  static const Bundle bundle =
      BundleOf(std::string(kSource) + kAlign + kAlignSteps + kEncodeBlocks);
  return bundle;
}

const Bundle& PassAlignBundle() {
  static const Bundle bundle = BundleOf(std::string(kSource) + kAlign);
  return bundle;
}

const Bundle& ThrowingAlignBundle() {
  static const Bundle bundle = BundleOf(std::string(kSource) + kThrowingAlign);
  return bundle;
}

const Bundle& WaitingEncoderBundle() {
  static const Bundle bundle = [] {
    std::string source = std::string(kSource) + kAlign;
    source.replace(source.find(kStops), sizeof(kStops) - 1, kWaits);
    const std::string features = "    if tokens.device.type == \"cpu\":";
    source.insert(source.find(features), "    self.position.copy_(torch.max(positions))\n");
    return BundleOf(source);
  }();
  return bundle;
}

}  // namespace linnet::model::testing
