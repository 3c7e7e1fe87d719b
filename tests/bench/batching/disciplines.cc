#include "tests/bench/batching/disciplines.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace linnet::bench {
namespace {

void Check(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(std::string(status.message()));
}

// Adds them as one batch and steps until all have ended.
void DecodeTogether(model::Engine& engine, Clock& clock, double start,
                    std::span<const Request> group, size_t first, Served& served) {
  std::vector<model::SequenceInput> inputs;
  size_t longest = 0;
  for (size_t i = 0; i < group.size(); ++i) {
    inputs.push_back(group[i].input);
    inputs.back().id = first + i;
    longest = std::max(longest, inputs.back().source.size());
    served.encoded_tokens += std::ssize(inputs.back().source);
  }
  ++served.encoder_calls;
  served.padded_tokens += static_cast<int64_t>(longest * inputs.size());
  Check(engine.Add(inputs));
  while (engine.sequences() > 0) {
    ++served.steps;
    served.rows += engine.rows_in_use();
    auto events = engine.Step();
    Check(events.status());
    const double now = clock.Now() - start;
    for (const model::SequenceEvent& event : *events) {
      Check(event.status);
      if (event.finished) served.latencies[event.id] = now - group[event.id - first].arrival;
    }
  }
  served.seconds = clock.Now() - start;
}

class LatencySink final : public server::Sink {
 public:
  LatencySink(Clock& clock, double due, double& latency)
      : clock_(clock), due_(due), latency_(latency) {}
  void Done(absl::StatusOr<server::SequenceResult> result) override {
    Check(result.status());
    latency_ = clock_.Now() - due_;
  }

 private:
  Clock& clock_;
  double due_;
  double& latency_;
};

}  // namespace

Served OneAtATime(model::Engine& engine, Clock& clock, std::span<const Request> requests) {
  return Static(engine, clock, requests, {.batch = 1, .timeout = 0});
}

Served Static(model::Engine& engine, Clock& clock, std::span<const Request> requests,
              const StaticOptions& options) {
  Served served;
  served.latencies.resize(requests.size());
  const double start = clock.Now();
  for (size_t first = 0; first < requests.size();) {
    const size_t full = std::min(first + options.batch, requests.size());
    // Closed when it is full or at its timeout. (The last batch may never be full.)
    const double out_of_time = requests[first].arrival + options.timeout;
    const double closed = full == first + options.batch
                              ? std::min(requests[full - 1].arrival, out_of_time)
                              : out_of_time;
    clock.WaitUntil(start + closed);
    const double now = clock.Now() - start;
    size_t end = first + 1;
    while (end < full && requests[end].arrival <= now) ++end;
    DecodeTogether(engine, clock, start, requests.subspan(first, end - first), first, served);
    first = end;
  }
  return served;
}

Served Continuous(model::Engine& engine, Clock& clock, std::span<const Request> requests,
                  const server::BatcherOptions& options) {
  Served served;
  served.latencies.resize(requests.size());
  const double start = clock.Now();
  server::Batcher batcher(engine, options);
  const auto time = [&] { return absl::UnixEpoch() + absl::Seconds(clock.Now()); };
  for (size_t next = 0; next < requests.size() || !batcher.idle();) {
    if (batcher.idle()) clock.WaitUntil(start + requests[next].arrival);
    for (; next < requests.size() && start + requests[next].arrival <= clock.Now(); ++next) {
      auto sequence = std::make_unique<server::Sequence>();
      sequence->input = requests[next].input;
      sequence->sink = std::make_unique<LatencySink>(clock, start + requests[next].arrival,
                                                     served.latencies[next]);
      Check(batcher.Add(sequence, time()));
    }
    const server::StepReport report = batcher.Step(time);
    served.steps += report.stepped;
    served.rows += report.rows;
    served.encoder_calls += report.encoder_calls;
    served.encoded_tokens += report.encoded_tokens;
    served.padded_tokens += report.padded_encoded_tokens;
  }
  served.seconds = clock.Now() - start;
  return served;
}

double Percentile(std::vector<double> values, double percent) {
  const auto rank = static_cast<size_t>(std::ceil(percent / 100 * std::ssize(values)));
  const auto nth = values.begin() + std::max<size_t>(rank, 1) - 1;
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

}  // namespace linnet::bench
