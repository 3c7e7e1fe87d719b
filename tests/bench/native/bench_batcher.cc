// Measures the cost of a batcher step without its engine while many sequences wait that have
// deadlines and may be cancelled: bench_batcher --benchmark_out=…
#include <benchmark/benchmark.h>

#include <deque>
#include <memory>
#include <string>

#include "server/schedule/batcher.h"
#include "tests/support/echo_engine.h"

namespace linnet::server {
namespace {

constexpr int kRows = 32;

class NoSink final : public Sink {
  void Done(absl::StatusOr<SequenceResult>) override {}
};

// The engine is full, and the number of waiting sequences is constant: each finished one is
// replaced.
void BM_Step(benchmark::State& state) {
  const auto waiting = static_cast<int>(state.range(0));
  const auto clients = static_cast<uint64_t>(state.range(1));
  test::EchoEngine engine({.rows = kRows, .encoder_cache_tokens = 1 << 20});
  Batcher batcher(engine, {.shed = {.interval = absl::Seconds(1), .max_wait = absl::Hours(24)}});
  absl::Time now = absl::FromUnixSeconds(1'000'000);
  uint64_t added = 0;
  auto add = [&] {
    auto sequence = std::make_unique<Sequence>();
    sequence->input.source = std::vector<model::TokenId>(20, 5);
    sequence->input.source.push_back(model::SpecialTokens{}.eos);
    sequence->input.options = {.beam_size = 1, .max_target_tokens = 50};
    sequence->caller = {.client = std::to_string(added % clients), .call = added / 4 + 1};
    sequence->deadline = now + absl::Hours(1 + added % 10);
    sequence->cancelled = std::make_shared<Cancellation>();
    sequence->sink = std::make_unique<NoSink>();
    ++added;
    if (!batcher.Add(sequence, now).ok()) state.SkipWithError("refused");
  };
  while (batcher.waiting() < waiting) add();
  int64_t examined = 0;
  for (auto _ : state) {
    const StepReport report = batcher.Step([&] { return now += absl::Microseconds(1); });
    examined += report.examined;
    while (batcher.waiting() < waiting) add();
  }
  state.counters["examined"] =
      benchmark::Counter(static_cast<double>(examined), benchmark::Counter::kAvgIterations);
}
BENCHMARK(BM_Step)
    ->ArgNames({"waiting", "clients"})
    ->ArgsProduct({{32, 1000, 10'000, 100'000, 333'000}, {1, 100}})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace linnet::server

BENCHMARK_MAIN();
