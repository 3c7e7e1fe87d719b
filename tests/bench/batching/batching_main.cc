// bench_batching: compares continuous batching with static batching with a timeout and with one
// request at a time, at several loads. Prints JSON; run.py makes a table and a plot of it.
//
//   bench_batching --costs CALL,TOKEN,STEP,ROW     simulates an engine with these costs in seconds
//   bench_batching --bundle DIR                    measures a real engine
//   bench_batching --bundle DIR --measure_costs    measures encoder calls and steps
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "model/runtime/bundle/bundle.h"
#include "model/torch/torch_engine.h"
#include "tests/bench/batching/cost_engine.h"
#include "tests/bench/batching/disciplines.h"
#include "tests/bench/batching/workload.h"

using Numbers = std::vector<std::string>;

ABSL_FLAG(Numbers, costs, {}, "CALL,TOKEN,STEP,ROW in seconds: simulate");
ABSL_FLAG(std::string, bundle, "", "bundle of the engine");
ABSL_FLAG(bool, measure_costs, false, "print the times of encoder calls and steps");
ABSL_FLAG(std::string, compute, "float32", "compute type of the engine");
ABSL_FLAG(int, threads, 1, "threads of the engine");
ABSL_FLAG(int, sequences, 32, "max running sequences, and the batch size of static batching");
ABSL_FLAG(int, beam, 4, "beam size of every request");
ABSL_FLAG(int, requests, 20000, "requests at each load");
ABSL_FLAG(int64_t, seed, 1, "seed of the requests");
ABSL_FLAG(Numbers, loads, Numbers({"10", "30", "50", "70", "80", "90", "100", "110", "120"}),
          "loads in percent of the capacity of continuous batching");
ABSL_FLAG(Numbers, timeouts, Numbers({"0", "4", "16", "64"}),
          "timeouts of static batching, in steps of a full engine");
ABSL_FLAG(Numbers, waits, Numbers({"4"}), "max_wait_steps of continuous batching");
ABSL_FLAG(double, capacity, 0, "requests per second at 100 % load; 0: measure it");
ABSL_FLAG(double, call_steps, linnet::server::EncodeOptions{}.encode_call_steps,
          "encode_call_steps of continuous batching");
ABSL_FLAG(int, call_tokens, linnet::server::EncodeOptions{}.encode_call_tokens,
          "encode_call_tokens of continuous batching");

namespace linnet::bench {
namespace {

using Json = nlohmann::ordered_json;

class RealClock final : public Clock {
 public:
  double Now() override { return absl::ToDoubleSeconds(absl::Now() - start_); }
  void WaitUntil(double time) override { absl::SleepFor(absl::Seconds(time - Now())); }

 private:
  absl::Time start_ = absl::Now();
};

std::vector<double> Parse(const Numbers& texts) {
  std::vector<double> numbers(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!absl::SimpleAtod(texts[i], &numbers[i]))
      throw std::runtime_error(absl::StrCat("\"", texts[i], "\" is not a number"));
  }
  return numbers;
}

// The engine under test and its clock.
struct Server {
  std::unique_ptr<Clock> clock;
  std::unique_ptr<model::Engine> engine;
  int vocabulary_size = 8000;
};

int Rows() { return absl::GetFlag(FLAGS_sequences) * absl::GetFlag(FLAGS_beam); }

Server SimulatedServer() {
  const std::vector<double> costs = Parse(absl::GetFlag(FLAGS_costs));
  if (costs.size() != 4) throw std::runtime_error("--costs takes four numbers");
  Server server;
  auto clock = std::make_unique<VirtualClock>();
  server.engine = std::make_unique<CostEngine>(
      Costs{.call = costs[0], .token = costs[1], .step = costs[2], .row = costs[3]}, Rows(),
      *clock);
  server.clock = std::move(clock);
  return server;
}

Server RealServer() {
  const auto bundle = model::ReadBundle(absl::GetFlag(FLAGS_bundle));
  if (!bundle.ok()) throw std::runtime_error(std::string(bundle.status().message()));
  const auto compute = model::ParseComputeType(absl::GetFlag(FLAGS_compute));
  if (!compute.ok()) throw std::runtime_error(std::string(compute.status().message()));
  model::TorchEngineOptions options;
  options.compute = *compute;
  options.threads = absl::GetFlag(FLAGS_threads);
  options.rows = Rows();
  options.mask_eos = true;  // every target runs to its length
  auto engine = model::MakeTorchEngine(*bundle, options);
  if (!engine.ok()) throw std::runtime_error(std::string(engine.status().message()));
  Server server;
  server.clock = std::make_unique<RealClock>();
  server.engine = *std::move(engine);
  server.vocabulary_size = server.engine->info().source_vocabulary_size;
  return server;
}

WorkloadOptions WorkloadAt(const Server& server, double rate) {
  return {.requests = absl::GetFlag(FLAGS_requests),
          .rate = rate,
          .seed = static_cast<uint64_t>(absl::GetFlag(FLAGS_seed)),
          .beam_size = absl::GetFlag(FLAGS_beam),
          .vocabulary_size = server.vocabulary_size};
}

server::BatcherOptions BatcherAt(double wait) {
  return {.max_sequences = absl::GetFlag(FLAGS_sequences),
          .encode = {.max_wait_steps = static_cast<int>(wait),
                     .encode_call_steps = static_cast<float>(absl::GetFlag(FLAGS_call_steps)),
                     .encode_call_tokens = absl::GetFlag(FLAGS_call_tokens)}};
}

Json Describe(const Served& served) {
  double sum = 0;
  for (double latency : served.latencies) sum += latency;
  Json json;
  json["served_per_second"] = std::ssize(served.latencies) / served.seconds;
  json["p50"] = Percentile(served.latencies, 50);
  json["p99"] = Percentile(served.latencies, 99);
  json["mean"] = sum / std::ssize(served.latencies);
  json["rows_per_step"] = static_cast<double>(served.rows) / served.steps;
  json["sequences_per_call"] =
      static_cast<double>(std::ssize(served.latencies)) / served.encoder_calls;
  json["padding"] = 1 - static_cast<double>(served.encoded_tokens) / served.padded_tokens;
  return json;
}

// Requests per second while requests always wait.
double Capacity(Server& server, double wait) {
  const std::vector<Request> requests = MakeWorkload(WorkloadAt(server, 1e9));
  const Served served = Continuous(*server.engine, *server.clock, requests, BatcherAt(wait));
  return std::ssize(requests) / served.seconds;
}

// Duration of a step with all rows in use.
double FullStepSeconds(Server& server) {
  Served served;
  std::vector<Request> requests = MakeWorkload(WorkloadAt(server, 1e9));
  requests.resize(absl::GetFlag(FLAGS_sequences));
  for (Request& request : requests) {
    request.arrival = 0;
    request.input.options.min_target_tokens = request.input.options.max_target_tokens = 20;
  }
  const auto run = [&](int steps) {
    for (Request& request : requests)
      request.input.options.min_target_tokens = request.input.options.max_target_tokens = steps;
    return Static(*server.engine, *server.clock, requests,
                  {.batch = absl::GetFlag(FLAGS_sequences)})
        .seconds;
  };
  run(5);  // warm-up
  const double few = run(5);
  return (run(25) - few) / 20;
}

Json Compare(Server& server) {
  const std::vector<double> waits = Parse(absl::GetFlag(FLAGS_waits));
  const double step = FullStepSeconds(server);
  double capacity = absl::GetFlag(FLAGS_capacity);
  if (capacity <= 0) capacity = Capacity(server, waits.front());
  Json result;
  result["compute"] = server.engine->info().compute_type;
  result["requests"] = absl::GetFlag(FLAGS_requests);
  result["sequences"] = absl::GetFlag(FLAGS_sequences);
  result["beam"] = absl::GetFlag(FLAGS_beam);
  result["full_step_seconds"] = step;
  result["capacity"] = capacity;
  for (double load : Parse(absl::GetFlag(FLAGS_loads))) {
    const auto requests = MakeWorkload(WorkloadAt(server, capacity * load / 100));
    const auto add = [&](const char* discipline, const char* setting, double value,
                         const Served& served) {
      Json run = Describe(served);
      run["load"] = load;
      run["discipline"] = discipline;
      if (*setting != 0) run[setting] = value;
      result["runs"].push_back(run);
      std::cerr << run.dump() << "\n";
    };
    for (double wait : waits) {
      add("continuous", "max_wait_steps", wait,
          Continuous(*server.engine, *server.clock, requests, BatcherAt(wait)));
    }
    for (double timeout : Parse(absl::GetFlag(FLAGS_timeouts))) {
      const StaticOptions options = {.batch = absl::GetFlag(FLAGS_sequences),
                                     .timeout = timeout * step};
      add("static", "timeout_steps", timeout,
          Static(*server.engine, *server.clock, requests, options));
    }
    add("one at a time", "", 0, OneAtATime(*server.engine, *server.clock, requests));
  }
  return result;
}

double Median(std::vector<double> values) { return Percentile(std::move(values), 50); }

// Measures encoder calls by sequences and tokens, and steps by rows.
Json MeasureCosts(Server& server) {
  constexpr int kRepeats = 7;
  Json result;
  model::SequenceId id = 1;
  const auto inputs = [&](int sequences, int tokens) {
    std::vector<model::SequenceInput> made;
    for (const Request& request : MakeWorkload({.requests = sequences,
                                  .seed = id,
                                  .beam_size = absl::GetFlag(FLAGS_beam),
                                  .median_tokens = static_cast<double>(tokens),
                                  .spread = 0,
                                  .vocabulary_size = server.vocabulary_size})) {
      made.push_back(request.input);
      made.back().id = id++;
      made.back().options.min_target_tokens = made.back().options.max_target_tokens = 40;
    }
    return made;
  };
  for (int sequences : {1, 2, 4, 8, 16}) {
    for (int tokens : {8, 16, 32, 64}) {
      std::vector<double> seconds;
      for (int i = 0; i < kRepeats; ++i) {
        const auto group = inputs(sequences, tokens);
        const double before = server.clock->Now();
        if (auto status = server.engine->Add(group); !status.ok())
          throw std::runtime_error(std::string(status.message()));
        seconds.push_back(server.clock->Now() - before);
        for (const auto& each : group) server.engine->Release(each.id);
      }
      result["encode"].push_back(
          {{"tokens", sequences * tokens}, {"sequences", sequences}, {"seconds", Median(seconds)}});
    }
  }
  for (int sequences : {1, 2, 4, 8, 16, 24, 32}) {
    if (sequences > absl::GetFlag(FLAGS_sequences)) break;
    const auto group = inputs(sequences, 24);
    if (auto status = server.engine->Add(group); !status.ok())
      throw std::runtime_error(std::string(status.message()));
    std::vector<double> seconds;
    for (int i = 0; i < 4 * kRepeats; ++i) {
      const double before = server.clock->Now();
      const auto events = server.engine->Step();
      if (!events.ok()) throw std::runtime_error(std::string(events.status().message()));
      if (i > 0)
        seconds.push_back(server.clock->Now() - before);  // the first step has one row per sequence
    }
    result["step"].push_back(
        {{"rows", server.engine->rows_in_use()}, {"seconds", Median(seconds)}});
    for (const auto& each : group) server.engine->Release(each.id);
  }
  return result;
}

int Main() {
  Server server = absl::GetFlag(FLAGS_bundle).empty() ? SimulatedServer() : RealServer();
  std::cout << (absl::GetFlag(FLAGS_measure_costs) ? MeasureCosts(server) : Compare(server)).dump(1)
            << std::endl;
  return 0;
}

}  // namespace
}  // namespace linnet::bench

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  try {
    return linnet::bench::Main();
  } catch (const std::exception& error) {
    std::cerr << "bench_batching: " << error.what() << "\n";
    return 1;
  }
}
