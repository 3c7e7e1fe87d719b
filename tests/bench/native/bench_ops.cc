// Speed of the operators on the CPU, in necessary bytes read and written, and in multiply-adds.
//
// Sizes: the base model (512 channels, 8 heads, width 31) at beam 5 for one request, and at 160
// rows. ReadState is the upper bound: torch's sum over the same state. The benchmarks visit the
// states of `layers` layers in turn, as a decoder does, so that the larger cases do not fit into
// the cache.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <type_traits>
#include <vector>

#include "model/ops/convolution/convolution.h"
#include "model/ops/convolution/convolution_step.h"
#include "model/ops/convolution/depthwise_conv.h"
#include "model/ops/convolution/depthwise_conv_step.h"
#include "model/ops/cpu/gemm.h"
#include "model/ops/ops.h"
#include "model/ops/pack_linear.h"
#include "model/ops/params.h"
#include "model/ops/self_attention_step.h"
#include "model/ops/source_attention.h"

namespace linnet::ops {
namespace {

constexpr int64_t kChannels = 512, kHeads = 8, kWidth = 31, kLayers = 6;

using benchmark::Counter;

at::ScalarType TypeOf(const benchmark::State& state) {
  return state.range(1) == 16 ? at::kBFloat16 : at::kFloat;
}

void Report(benchmark::State& state, int64_t bytes, int64_t multiply_adds) {
  state.counters["bytes"] = Counter(bytes, Counter::kIsIterationInvariantRate, Counter::kIs1024);
  state.counters["flop"] = Counter(2 * multiply_adds, Counter::kIsIterationInvariantRate);
}

std::vector<at::Tensor> LayerStates(const benchmark::State& state) {
  std::vector<at::Tensor> states;
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    states.push_back(at::randn({kWidth, state.range(0), kChannels}).to(TypeOf(state)));
  }
  return states;
}

// Beams of 5: the inputs of a row are in the five slots of its beam.
at::Tensor Backpointers(int64_t rows, int64_t depth) {
  const auto slots = at::arange(rows, at::kInt).unsqueeze(1);
  const auto ago = at::arange(depth, at::kInt).unsqueeze(0);
  const auto beam = slots.div(5, "floor") * 5;
  return (beam + (slots - beam + ago * 2).remainder(5)).to(at::kInt);
}

// Arguments: rows, bits of the type.
template <bool dynamic>
void ConvolutionStep(benchmark::State& state) {
  const int64_t rows = state.range(0);
  const auto x = at::randn({rows, kChannels}).to(TypeOf(state));
  const auto weight =
      (dynamic ? at::randn({rows, kHeads, kWidth}) : at::randn({kHeads, kWidth})).to(TypeOf(state));
  auto states = LayerStates(state);
  const auto positions = at::full({rows}, 100, at::kInt);
  const auto backpointers = Backpointers(rows, kWidth);
  const auto step = dynamic ? DynamicConvStep : LightConvStep;
  size_t layer = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        step(x, weight, states[layer], positions, backpointers, ConvolutionStepCpu));
    layer = (layer + 1) % states.size();
  }
  const int64_t inputs = rows * kWidth * kChannels;
  Report(state, (inputs + weight.numel() + 2 * x.numel()) * x.element_size(), inputs);
}

// The projection to the taps and the convolution after it: as the two operators that a decoder
// layer calls through torch's dispatcher, or fused, in memory that is kept. The difference is what
// fusing them could save. Arguments: rows, bits of the weights.
template <bool fused>
void DynamicStep(benchmark::State& state) {
  const int64_t rows = state.range(0), taps = kHeads * kWidth;
  auto& dispatcher = c10::Dispatcher::singleton();
  const auto pack = dispatcher.findSchemaOrThrow("linnet::pack_linear", "")
                        .typed<at::Tensor(const at::Tensor&, c10::string_view)>();
  const auto linear =
      dispatcher.findSchemaOrThrow("linnet::linear", "")
          .typed<at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                            c10::string_view, const std::optional<at::Tensor>&,
                            const std::optional<at::Tensor>&, const std::optional<at::Tensor>&)>();
  const auto step = dispatcher.findSchemaOrThrow("linnet::dynamic_conv_step", "")
                        .typed<at::Tensor(const at::Tensor&, const at::Tensor&, at::Tensor&,
                                          const at::Tensor&, const at::Tensor&)>();
  const at::Tensor x = at::randn({rows, kChannels});
  std::vector<at::Tensor> weights, states;
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    weights.push_back(
        pack.call(at::randn({taps, kChannels}), state.range(1) == 8 ? "int8" : "float32"));
    states.push_back(at::randn({kWidth, rows, kChannels}));
  }
  const at::Tensor positions = at::full({rows}, 100, at::kInt),
                   backpointers = Backpointers(rows, kWidth);
  at::Tensor scores = at::empty({rows, taps}), y = at::empty_like(x);
  size_t layer = 0;
  for (auto _ : state) {
    if constexpr (fused) {
      LinearCpu({.weight = FindPackedMatrix(weights[layer]),
                 .x = x.const_data_ptr<float>(),
                 .bias = nullptr,
                 .activation = Activation::kNone,
                 .residual = nullptr,
                 .norm_weight = nullptr,
                 .norm_bias = nullptr,
                 .norm_epsilon = 1e-5f,
                 .y = scores.mutable_data_ptr<float>(),
                 .rows = rows,
                 .width = taps});
      ConvolutionStepCpu({.type = FloatType::kFloat32,
                          .dynamic = true,
                          .x = x.const_data_ptr(),
                          .weight = scores.const_data_ptr(),
                          .state = {.data = states[layer].mutable_data_ptr(),
                                    .positions = positions.const_data_ptr<int32_t>(),
                                    .backpointers = backpointers.const_data_ptr<int32_t>(),
                                    .depth = kWidth,
                                    .slots = rows,
                                    .size = kChannels,
                                    .backpointers_stride = kWidth},
                          .y = y.mutable_data_ptr(),
                          .rows = rows,
                          .channels = kChannels,
                          .heads = kHeads,
                          .width = kWidth});
      benchmark::DoNotOptimize(y.data_ptr());
    } else {
      const at::Tensor weight = linear.call(x, weights[layer], {}, "none", {}, {}, {});
      benchmark::DoNotOptimize(step.call(x, weight.view({rows, kHeads, kWidth}), states[layer],
                                         positions, backpointers));
    }
    layer = (layer + 1) % kLayers;
  }
}

// The taps have the layout of the kernel.
void DepthwiseStep(benchmark::State& state) {
  const int64_t rows = state.range(0);
  const auto x = at::randn({rows, kChannels}).to(TypeOf(state));
  const auto weight = at::randn({kWidth, kChannels}).to(TypeOf(state)).t();
  auto states = LayerStates(state);
  const auto positions = at::full({rows}, 100, at::kInt);
  const auto backpointers = Backpointers(rows, kWidth);
  size_t layer = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(DepthwiseConvStep(x, weight, states[layer], positions, backpointers,
                                               /*dilation=*/1, DepthwiseConvStepCpu));
    layer = (layer + 1) % states.size();
  }
  const int64_t inputs = rows * kWidth * kChannels;
  Report(state, (inputs + weight.numel() + 2 * x.numel()) * x.element_size(), inputs);
}

// Arguments: rows, bits of the type, neighbouring heads. Over the last kWidth positions, so that
// the caches have twice the size of a convolution's state.
void SelfAttention(benchmark::State& state) {
  const int64_t rows = state.range(0), neighbour_heads = state.range(2);
  const auto query = at::randn({rows, kChannels}).to(TypeOf(state));
  std::vector<at::Tensor> caches;
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    caches.push_back(at::randn({kWidth, rows, 2, kChannels}).to(TypeOf(state)));
  }
  const auto positions = at::full({rows}, 100, at::kInt);
  const auto backpointers = Backpointers(rows, kWidth);
  size_t layer = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(SelfAttentionStep(query, query, query, caches[layer], positions,
                                               backpointers, kHeads, neighbour_heads,
                                               SelfAttentionStepCpu));
    layer = (layer + 1) % caches.size();
  }
  const int64_t elements = rows * kWidth * 2 * kChannels;
  Report(state, (elements + 6 * query.numel()) * query.element_size(), elements * neighbour_heads);
}

void ReadState(benchmark::State& state) {
  const auto states = LayerStates(state);
  size_t layer = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(at::sum(states[layer]));
    layer = (layer + 1) % states.size();
  }
  Report(state, states[0].numel() * states[0].element_size(), states[0].numel());
}

// Total number of taps inside the sequence, over all positions.
int64_t TapsInside(int64_t time) {
  int64_t taps = 0;
  for (int64_t t = 0; t < time; ++t) {
    taps += std::min(kWidth, time - t + kWidth / 2) - std::max<int64_t>(0, kWidth / 2 - t);
  }
  return taps;
}

// Each input is read once, each output written.
template <bool dynamic>
void Convolve(benchmark::State& state, int64_t batch, int64_t time) {
  const auto x = at::randn({batch, time, kChannels}).to(TypeOf(state));
  const auto weight =
      (dynamic ? at::randn({batch, time, kHeads, kWidth}) : at::randn({kHeads, kWidth}))
          .to(TypeOf(state));
  const auto lengths = at::full({batch}, time, at::kInt);
  const auto convolve = dynamic ? DynamicConv : LightConv;
  for (auto _ : state) {
    benchmark::DoNotOptimize(convolve(x, weight, lengths, kWidth / 2, {}, ConvolutionCpu));
  }
  Report(state, (weight.numel() + 2 * x.numel()) * x.element_size(),
         batch * TapsInside(time) * kChannels);
}

// Arguments: sequences of 30 tokens, bits of the type.
template <bool dynamic>
void Convolution(benchmark::State& state) {
  Convolve<dynamic>(state, state.range(0), 30);
}

// Arguments: tokens of one text, bits of the type.
template <bool dynamic>
void LongConvolution(benchmark::State& state) {
  Convolve<dynamic>(state, 1, state.range(0));
}

// The upper bound of LongConvolution: reads as many inputs and writes as many outputs, into newly
// allocated memory like a convolution (for many pages, page faults cost more than the bytes).
void LongCopy(benchmark::State& state) {
  const auto x = at::randn({1, state.range(0), kChannels}).to(TypeOf(state));
  for (auto _ : state) benchmark::DoNotOptimize(x.clone());
  Report(state, 2 * x.numel() * x.element_size(), 0);
}

// As Convolution; the taps have the layout of the kernel.
void Depthwise(benchmark::State& state) {
  const int64_t batch = state.range(0), time = 30;
  const auto x = at::randn({batch, time, kChannels}).to(TypeOf(state));
  const auto weight = at::randn({kWidth, kChannels}).to(TypeOf(state)).t();
  const auto lengths = at::full({batch}, time, at::kInt);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        DepthwiseConv(x, weight, lengths, kWidth / 2, /*dilation=*/1, {}, DepthwiseConvCpu));
  }
  Report(state, (weight.numel() + 2 * x.numel()) * x.element_size(),
         batch * TapsInside(time) * kChannels);
}

// Arguments: rows (five share a source), bits of the type, source tokens.
void Attention(benchmark::State& state) {
  const int64_t rows = state.range(0), tokens = state.range(2), block_tokens = 16;
  const int64_t row_blocks = (tokens + block_tokens - 1) / block_tokens;
  const int64_t sources = (rows + 4) / 5;
  const auto query = at::randn({rows, kChannels}).to(TypeOf(state));
  const auto memory =
      at::randn({sources * row_blocks, block_tokens, 2, kChannels}).to(TypeOf(state));
  const auto source = at::arange(rows, at::kInt).div(5, "floor").unsqueeze(1);
  const auto blocks = (source * row_blocks + at::arange(row_blocks, at::kInt)).to(at::kInt);
  const auto lengths = at::full({rows}, tokens, at::kInt);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        SourceAttention(query, memory, blocks, lengths, kHeads, SourceAttentionCpu));
  }
  const int64_t elements = rows * tokens * 2 * kChannels;
  Report(state, (elements + 2 * query.numel()) * query.element_size(), elements);
}

void Sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"rows", "bits"})->ArgsProduct({{5, 160}, {32, 16}})->UseRealTime();
}

BENCHMARK(ConvolutionStep<true>)->Name("dynamic_conv_step")->Apply(Sizes);
BENCHMARK(ConvolutionStep<false>)->Name("light_conv_step")->Apply(Sizes);
void DynamicSizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"rows", "bits"})->ArgsProduct({{5, 160}, {32, 8}})->UseRealTime();
}

BENCHMARK(DynamicStep<false>)->Name("dynamic_step_of_two_operators")->Apply(DynamicSizes);
BENCHMARK(DynamicStep<true>)->Name("dynamic_step_of_one")->Apply(DynamicSizes);
BENCHMARK(DepthwiseStep)->Name("depthwise_conv_step")->Apply(Sizes);
BENCHMARK(SelfAttention)
    ->Name("self_attention_step")
    ->ArgNames({"rows", "bits", "neighbours"})
    ->ArgsProduct({{5, 160}, {32, 16}, {1, 3}})
    ->UseRealTime();
BENCHMARK(ReadState)->Apply(Sizes);
BENCHMARK(Convolution<true>)
    ->Name("dynamic_conv")
    ->ArgNames({"batch", "bits"})
    ->ArgsProduct({{1, 32}, {32, 16}})
    ->UseRealTime();
BENCHMARK(Convolution<false>)
    ->Name("light_conv")
    ->ArgNames({"batch", "bits"})
    ->ArgsProduct({{1, 32}, {32, 16}})
    ->UseRealTime();
void Long(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"tokens", "bits"})
      ->ArgsProduct({{1024, 4096, 32768}, {32, 16}})
      ->UseRealTime()
      ->MeasureProcessCPUTime();
}

BENCHMARK(LongConvolution<true>)->Name("dynamic_conv_long")->Apply(Long);
BENCHMARK(LongConvolution<false>)->Name("light_conv_long")->Apply(Long);
BENCHMARK(LongCopy)->Name("copy_long")->Apply(Long);
BENCHMARK(Depthwise)
    ->Name("depthwise_conv")
    ->ArgNames({"batch", "bits"})
    ->ArgsProduct({{1, 32}, {32, 16}})
    ->UseRealTime();
BENCHMARK(Attention)
    ->Name("source_attention")
    ->ArgNames({"rows", "bits", "tokens"})
    ->ArgsProduct({{5, 160}, {32, 16}, {30, 300}})
    ->UseRealTime();

// The most multiply-adds that a core does, in int8 (sums of int32) or float32: 16 sums in
// registers, no memory. In float32 nothing needs VNNI.
#ifndef __clang__  // see gemm.cc
template <class Number>
__attribute__((target("avx512f,avx512vnni"))) Number SumInRegisters(int64_t rounds) {
  typedef Number Vector __attribute__((vector_size(64)));
  Vector sums[16] = {}, values = Vector{} + 1, weights = Vector{} + 2;
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (int s = 0; s < 16; ++s) {
      if constexpr (std::is_same_v<Number, float>) {
        __asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(sums[s]) : "v"(values), "v"(weights));
      } else {
        __asm__ volatile("vpdpbusd %2, %1, %0" : "+v"(sums[s]) : "v"(values), "v"(weights));
      }
    }
  }
  Vector total = {};
#pragma GCC unroll 16
  for (int s = 0; s < 16; ++s) total += sums[s];
  return total[0];
}

// `lacks` is the error where the processor lacks the instruction, which makes `each` multiply-adds.
template <class Number>
void Peak(benchmark::State& state, bool has_it, const char* lacks, int64_t each) {
  if (!has_it) return state.SkipWithError(lacks);
  constexpr int64_t kRounds = 1 << 16;
  for (auto unused : state) benchmark::DoNotOptimize(SumInRegisters<Number>(kRounds));
  Report(state, 0, kRounds * 16 * each);
}
void Int8Peak(benchmark::State& state) {
  Peak<int32_t>(state, HasVnni(), "the processor has no AVX512-VNNI", 64);
}
void Float32Peak(benchmark::State& state) {
  Peak<float>(state, __builtin_cpu_supports("avx512f"), "the processor has no AVX512F", 16);
}
BENCHMARK(Int8Peak)->Name("int8_peak");
BENCHMARK(Float32Peak)->Name("float32_peak");
#endif

}  // namespace
}  // namespace linnet::ops

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  std::fprintf(stderr, "%s; %d threads\n", linnet::ops::Describe().c_str(), at::get_num_threads());
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
