// The host's part of a decoder step: the scan for candidates and the bookkeeping of the beams.
#include <cmath>
#include <random>
#include <vector>

#include "benchmark/benchmark.h"
#include "model/runtime/search/beam_search.h"
#include "model/runtime/search/candidates.h"

namespace linnet::model {
namespace {

// Flat logits of `rows` rows, as of an uncertain model: the worst case for a scan that skips
// blocks.
std::vector<float> RandomLogits(int rows, int vocabulary) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 1.5f);
  std::vector<float> logits(static_cast<size_t>(rows) * vocabulary);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

// Advance at full beams: 32 searches of beam 5 over 32000 tokens are 160 rows.
void BM_Advance(benchmark::State& state) {
  const int searches = static_cast<int>(state.range(0));
  const int beam = static_cast<int>(state.range(1));
  const int vocabulary = static_cast<int>(state.range(2));
  const std::vector<float> logits = RandomLogits(searches * beam, vocabulary);
  const std::vector<float> normalizers(beam, std::log(static_cast<float>(vocabulary)) + 1.1f);
  const SearchOptions options = {
      .beam_size = beam, .min_target_tokens = 100, .max_target_tokens = 100};
  const auto row = [&](int search) {
    return std::span<const float>(logits).subspan(static_cast<size_t>(search) * beam * vocabulary);
  };
  for (auto _ : state) {
    state.PauseTiming();
    std::vector<BeamSearch> running;
    for (int i = 0; i < searches; ++i) {
      running.emplace_back(SearchSpec{.options = options});
      if (!running[i].Advance(row(i).first(vocabulary), std::span(normalizers).first(1)).ok()) {
        state.SkipWithError("the first step failed");
        return;
      }
    }
    state.ResumeTiming();
    for (int i = 0; i < searches; ++i) {
      benchmark::DoNotOptimize(
          running[i].Advance(row(i).first(size_t{1} * beam * vocabulary), normalizers));
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(logits.size() * sizeof(float)));
}
BENCHMARK(BM_Advance)
    ->ArgNames({"searches", "beam", "vocabulary"})
    ->Args({1, 5, 32000})
    ->Args({32, 1, 32000})
    ->Args({32, 5, 32000})
    ->Args({32, 5, 8000})
    ->Unit(benchmark::kMicrosecond);

// One row, with a short and a long table of forbidden tokens.
void BM_PushRow(benchmark::State& state) {
  const std::vector<float> logits = RandomLogits(1, static_cast<int>(state.range(0)));
  std::vector<TokenId> excluded(state.range(1));
  for (int i = 0; i < excluded.size(); ++i) excluded[i] = 7 * i;
  for (auto _ : state) {
    TopCandidates top(10);
    PushRow({.logits = logits}, excluded, top);
    benchmark::DoNotOptimize(top.Take());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(logits.size() * sizeof(float)));
}
BENCHMARK(BM_PushRow)->ArgNames({"vocabulary", "excluded"})->Args({32000, 1})->Args({32000, 200});

}  // namespace
}  // namespace linnet::model

BENCHMARK_MAIN();
