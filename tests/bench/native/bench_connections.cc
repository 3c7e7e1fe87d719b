// Measures what a connection costs that is refused, with few and with many open:
// bench_connections --benchmark_out=…
#include <benchmark/benchmark.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "server/port/connections.h"

namespace linnet::server {
namespace {

constexpr MonotonicTime kNow{};

// Unknown connections of as many addresses, each of which has sent something.
void Open(Connections& connections, int count) {
  for (int i = 0; i < count; ++i) {
    const auto id =
        connections.Admit(absl::StrCat("10.", i / 65536, ".", i / 256, ".", i, ":1"), kNow);
    connections.Received(*id, i % 1000);
  }
}

void Refuse(benchmark::State& state, Connections& connections, const std::string& peer) {
  for (auto _ : state) {
    if (connections.Admit(peer, kNow).has_value()) return state.SkipWithError("admitted");
  }
}

void BM_RefusalAtTheLimitOfAll(benchmark::State& state) {
  const auto open = static_cast<int>(state.range(0));
  Connections connections({.connections = open});
  Open(connections, open);
  Refuse(state, connections, "10.0.0.0:2");
}
BENCHMARK(BM_RefusalAtTheLimitOfAll)->ArgName("open")->Arg(10)->Arg(1000)->Arg(100'000);

void BM_RefusalAtTheLimitOfAnAddress(benchmark::State& state) {
  const auto open = static_cast<int>(state.range(0));
  Connections connections({.connections_per_address = 1});
  Open(connections, open);
  Refuse(state, connections, "10.0.0.0:2");
}
BENCHMARK(BM_RefusalAtTheLimitOfAnAddress)->ArgName("open")->Arg(10)->Arg(1000)->Arg(100'000);

}  // namespace
}  // namespace linnet::server

BENCHMARK_MAIN();
