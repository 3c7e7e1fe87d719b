// Laws of the three disciplines on a simulated engine with a virtual clock and fixed seeds. The
// costs are those of a measured engine (tests/bench/results), rounded.
#include <cmath>
#include <numeric>

#include "gmock/gmock.h"
#include "tests/bench/batching/cost_engine.h"
#include "tests/bench/batching/disciplines.h"
#include "tests/bench/batching/workload.h"

namespace linnet::bench {
namespace {

constexpr Costs kCpu = {.call = 0.9e-3, .token = 40e-6, .step = 1.1e-3, .row = 61e-6};
// Assumed costs of a GPU: the time of a call or step hardly depends on its size.
constexpr Costs kGpu = {.call = 2.5e-3, .token = 2e-6, .step = 1.5e-3, .row = 2e-6};
constexpr int kSequences = 32, kBeam = 4;
constexpr double kLoads[] = {0.1, 0.3, 0.5, 0.7, 0.9, 1.2};

std::vector<Request> RequestsAt(double rate, int requests = 4000, uint64_t seed = 1) {
  return MakeWorkload({.requests = requests, .rate = rate, .seed = seed, .beam_size = kBeam});
}

struct Simulator {
  explicit Simulator(const Costs& costs) : costs(costs), engine(costs, kSequences * kBeam, clock) {}

  server::BatcherOptions Options() const {
    // Derived from the costs, as an operator would set them.
    return {.max_sequences = kSequences,
            .encode = {.encode_call_steps = static_cast<float>(costs.call / FullStep()),
                       .encode_call_tokens = static_cast<int>(costs.call / costs.token)}};
  }
  double FullStep() const { return costs.step + costs.row * kSequences * kBeam; }
  Served Continuously(std::span<const Request> requests) {
    return Continuous(engine, clock, requests, Options());
  }
  double Capacity() { return 4000 / Continuously(RequestsAt(1e9)).seconds; }

  Costs costs;
  VirtualClock clock;
  CostEngine engine;
};

class DisciplinesTest : public ::testing::TestWithParam<Costs> {
 protected:
  Simulator simulator_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Costs, DisciplinesTest, ::testing::Values(kCpu, kGpu),
                         [](const auto& costs) { return costs.param.row < 1e-5 ? "Gpu" : "Cpu"; });

TEST_P(DisciplinesTest, OneAtATimeMatchesPollaczekKhinchine) {
  // M/G/1: the mean wait is rate * E[service²] / (2 (1 - rate * E[service])) (Pollaczek,
  // Khinchine).
  const std::vector<Request> probe = RequestsAt(1, 200000);
  double mean = 0, square = 0;
  for (const Request& request : probe) {
    const Costs& costs = GetParam();
    const double service =
        costs.call + costs.token * std::ssize(request.input.source) +
        (request.input.options.max_target_tokens + 1) * (costs.step + costs.row * kBeam);
    mean += service / std::ssize(probe);
    square += service * service / std::ssize(probe);
  }
  for (double use : {0.3, 0.6}) {
    const double rate = use / mean;
    const std::vector<Request> requests = RequestsAt(rate, 200000);
    const Served served = OneAtATime(simulator_.engine, simulator_.clock, requests);
    const double latency =
        std::accumulate(served.latencies.begin(), served.latencies.end(), 0.0) / 200000;
    // 3 %: a few standard errors of the mean of 200000 correlated waits.
    EXPECT_NEAR(latency / (mean + rate * square / (2 * (1 - use))), 1, 0.03) << "use " << use;
  }
}

TEST_P(DisciplinesTest, ServesEveryRequestOnceAndNotTooEarly) {
  const Costs& costs = GetParam();
  for (double load : kLoads) {
    const std::vector<Request> requests = RequestsAt(load * simulator_.Capacity());
    for (const Served& served :
         {simulator_.Continuously(requests),
          Static(simulator_.engine, simulator_.clock, requests,
                 {.batch = kSequences, .timeout = 4 * simulator_.FullStep()}),
          OneAtATime(simulator_.engine, simulator_.clock, requests)}) {
      for (size_t i = 0; i < requests.size(); ++i) {
        const model::SequenceInput& input = requests[i].input;
        const double min = costs.call + costs.token * std::ssize(input.source) +
                           (input.options.max_target_tokens + 1) * (costs.step + costs.row * kBeam);
        ASSERT_GE(served.latencies[i], min * (1 - 1e-6));
      }
      EXPECT_EQ(served.encoded_tokens, std::accumulate(requests.begin(), requests.end(), int64_t{0},
                                                       [](int64_t sum, const Request& request) {
                                                         return sum +
                                                                std::ssize(request.input.source);
                                                       }));
    }
  }
}

TEST_P(DisciplinesTest, ContinuousIsNeverSlowerThanStaticAtTheSameLoad) {
  const double capacity = simulator_.Capacity();
  for (double load : kLoads) {
    for (uint64_t seed : {1, 2, 3}) {
      const std::vector<Request> requests = RequestsAt(load * capacity, 4000, seed);
      const Served continuous = simulator_.Continuously(requests);
      for (int timeout : {0, 4, 16, 64}) {
        const Served fixed =
            Static(simulator_.engine, simulator_.clock, requests,
                   {.batch = kSequences, .timeout = timeout * simulator_.FullStep()});
        // The max delay that the policy may add on purpose.
        const double wait = simulator_.Options().encode.max_wait_steps * simulator_.FullStep();
        for (double percent : {50, 99}) {
          EXPECT_LE(Percentile(continuous.latencies, percent),
                    Percentile(fixed.latencies, percent) + wait)
              << "load " << load << ", time-out of " << timeout << " steps, p" << percent;
        }
        EXPECT_LE(continuous.seconds, fixed.seconds + wait) << "load " << load;
      }
    }
  }
}

TEST_P(DisciplinesTest, ContinuousIsNeverSlowerThanOneAtATime) {
  const double capacity = simulator_.Capacity();
  for (double load : kLoads) {
    const std::vector<Request> requests = RequestsAt(load * capacity);
    const Served alone = OneAtATime(simulator_.engine, simulator_.clock, requests);
    const Served continuous = simulator_.Continuously(requests);
    // Other rows make steps longer, up to a full step, but no request waits for the end of others.
    EXPECT_LE(Percentile(continuous.latencies, 99), Percentile(alone.latencies, 99)) << load;
    EXPECT_LE(continuous.seconds, alone.seconds + simulator_.FullStep()) << load;
  }
}

TEST_P(DisciplinesTest, OnlyRunningRequestsOvertake) {
  // Under overload the queue is first come, first served: a much later request ends later.
  const std::vector<Request> requests = RequestsAt(1.2 * simulator_.Capacity());
  const Served served = simulator_.Continuously(requests);
  for (size_t i = 0; i + kSequences * 10 < requests.size(); ++i) {
    ASSERT_LT(requests[i].arrival + served.latencies[i],
              requests[i + kSequences * 10].arrival + served.latencies[i + kSequences * 10]);
  }
}

TEST_P(DisciplinesTest, PaddingCostsLessThanTheSavedCalls) {
  for (double load : kLoads) {
    const std::vector<Request> requests = RequestsAt(load * simulator_.Capacity());
    const Served served = simulator_.Continuously(requests);
    const int64_t saved = std::ssize(requests) - served.encoder_calls;
    EXPECT_LE(served.padded_tokens - served.encoded_tokens,
              saved * simulator_.Options().encode.encode_call_tokens);
  }
}

TEST_P(DisciplinesTest, LatencyWithoutLoadIsThatOfTheEngine) {
  // Requests arrive so far apart that no two overlap.
  std::vector<Request> requests = RequestsAt(1, 50);
  for (int i = 0; i < 50; ++i) requests[i].arrival = 10.0 * i;
  EXPECT_EQ(simulator_.Continuously(requests).latencies.size(), 50);
  const Served continuous = simulator_.Continuously(requests);
  const Served alone = OneAtATime(simulator_.engine, simulator_.clock, requests);
  for (int i = 0; i < 50; ++i) EXPECT_NEAR(continuous.latencies[i], alone.latencies[i], 1e-6);
}

TEST(WorkloadTest, ArrivalsArePoissonAndLengthsAreWithinLimits) {
  const std::vector<Request> requests = RequestsAt(50, 100000);
  double before = 0, sum = 0, square = 0;
  for (const Request& request : requests) {
    const double gap = request.arrival - before;
    before = request.arrival;
    sum += gap;
    square += gap * gap;
    ASSERT_GE(std::ssize(request.input.source), 3);
    ASSERT_LE(std::ssize(request.input.source), 120);
  }
  EXPECT_NEAR(sum / 100000 * 50, 1, 0.02);  // six standard errors of the mean
  // The variance of an exponential gap is its mean, squared: standard error 0.9 %.
  EXPECT_NEAR((square / 100000) * 2500, 2, 0.08);
}

}  // namespace
}  // namespace linnet::bench
