// The host's part of a decoder step: the scan for candidates and the bookkeeping of the beams.
#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "benchmark/benchmark.h"
#include "model/runtime/search/beam_search.h"
#include "model/runtime/search/candidates.h"
#include "model/runtime/search/token_grammar.h"

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

constexpr int kVocabulary = 32'000;

// The highest logits of rows, as an engine gives them, of a model that is fairly certain: each
// is lower than the one before by about 1 / rank.
class StubRows {
 public:
  static constexpr int kBest = 64;

  StubRows() {
    std::mt19937 random(1);
    std::exponential_distribution<float> gap(0.5f);
    std::uniform_int_distribution<TokenId> token(4 + 256, kVocabulary - 1);
    for (int row = 0; row < kRows; ++row) {
      float logit = 12;
      for (int rank = 1; rank <= kBest; ++rank) {
        logits_.push_back(logit -= gap(random) / static_cast<float>(rank));
        tokens_.push_back(token(random));
      }
    }
  }

  // As many logits as the search needs, of a row that depends on the last arguments.
  RowLogits For(const RowNeed& need, int search, int step, int hypothesis) const {
    const size_t row = (search * 7919U + step * 104'729U + hypothesis * 31U) % kRows;
    const size_t best = std::min(need.best, kBest);
    return {.logits = std::span(logits_).subspan(row * kBest, best),
            .tokens = std::span(tokens_).subspan(row * kBest, best),
            .log_normalizer = 12};
  }

 private:
  static constexpr int kRows = 509;  // fit into a cache
  std::vector<float> logits_;
  std::vector<TokenId> tokens_;
};

// Text, but for the special tokens and 256 byte pieces.
std::shared_ptr<const TokenGrammar> BytePieces() {
  std::vector<TokenGrammar::Class> classes(kVocabulary, TokenGrammar::kText);
  classes[0] = classes[1] = TokenGrammar::kControl;
  classes[2] = TokenGrammar::kEnd;
  for (int byte = 0; byte < 256; ++byte)
    classes[4 + byte] = TokenGrammar::OfByte(static_cast<uint8_t>(byte));
  return std::make_shared<const TokenGrammar>(classes);
}

// The host's time for one step of all searches, without an engine: targets of `tokens` tokens with
// the rules of the bundles. ngram: no_repeat_ngram_size. stable: each step reads the stable prefix,
// as for a stream.
void BM_Step(benchmark::State& state) {
  const int searches = static_cast<int>(state.range(0));
  const int beam = static_cast<int>(state.range(1));
  const int tokens = static_cast<int>(state.range(2));
  const bool stable = state.range(4) != 0;
  static const StubRows rows;
  const SearchSpec spec = {.options = {.beam_size = beam,
                                       .min_target_tokens = tokens,
                                       .max_target_tokens = tokens,
                                       .no_repeat_ngram_size = static_cast<int>(state.range(3)),
                                       .max_ngram_repeats = 2},
                           .grammar = BytePieces()};
  for (auto _ : state) {
    std::vector<std::unique_ptr<Search>> running(searches);
    for (auto& search : running) search = NewSearch(spec);
    std::vector<RowLogits> given;
    for (int step = 0; step < tokens; ++step) {
      for (int i = 0; i < searches; ++i) {
        given.clear();
        for (int row = 0; row < running[i]->live(); ++row)
          given.push_back(rows.For(running[i]->need(row), i, step, row));
        if (!running[i]->Advance(given).ok()) state.SkipWithError("a step failed");
        if (stable) benchmark::DoNotOptimize(running[i]->StablePrefix());
      }
    }
  }
  state.SetItemsProcessed(state.iterations() * tokens);  // steps
}
BENCHMARK(BM_Step)
    ->ArgNames({"searches", "beam", "tokens", "ngram", "stable"})
    ->Args({128, 5, 30, 0, 0})
    ->Args({128, 5, 100, 0, 0})
    ->Args({128, 5, 1000, 0, 0})
    ->Args({128, 5, 100, 3, 0})
    ->Args({128, 5, 1000, 3, 0})
    ->Args({128, 5, 100, 0, 1})
    ->Args({128, 5, 1000, 0, 1})
    ->Args({128, 1, 100, 0, 0})
    ->Unit(benchmark::kMillisecond);

// The same for searches on a device, which the host follows.
void BM_Follow(benchmark::State& state) {
  const int searches = static_cast<int>(state.range(0));
  const int beam = static_cast<int>(state.range(1));
  const int tokens = static_cast<int>(state.range(2));
  std::mt19937 random(1);
  std::vector<Candidate> candidates(size_t{64} * 1024);
  for (Candidate& candidate : candidates) {
    candidate = {.sum = -1,
                 .log_probability = -1,
                 .parent = static_cast<int>(random() % beam),
                 .token = static_cast<TokenId>(4 + random() % 1000)};
  }
  const SearchSpec spec = {.options = {.beam_size = beam, .max_target_tokens = tokens}};
  for (auto _ : state) {
    std::vector<std::unique_ptr<Search>> running(searches);
    for (auto& search : running) {
      search = NewSearch(spec);
      search->Follow(std::vector<Candidate>(beam, Candidate{.token = 5}), {});
    }
    size_t at = 0;
    for (int step = 1; step < tokens; ++step) {
      for (auto& search : running) {
        search->Follow(std::span(candidates).subspan(at, beam), {});
        at = (at + beam) % (candidates.size() - beam);
      }
    }
  }
  state.SetItemsProcessed(state.iterations() * tokens);
}
BENCHMARK(BM_Follow)
    ->ArgNames({"searches", "beam", "tokens"})
    ->Args({128, 5, 100})
    ->Args({128, 5, 1000})
    ->Unit(benchmark::kMillisecond);

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
