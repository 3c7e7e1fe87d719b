// Three ways to serve requests with one engine, on a real clock or a simulated one.
#pragma once

#include <span>
#include <vector>

#include "model/runtime/engine.h"
#include "server/schedule/batcher.h"
#include "tests/bench/batching/workload.h"

namespace linnet::bench {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual double Now() = 0;  // seconds, from any point on
  virtual void WaitUntil(double time) = 0;
};

struct Served {
  std::vector<double> latencies;  // from arrival to end, in the order of the requests
  double seconds = 0;             // from the start to the last end
  int64_t steps = 0;
  int64_t rows = 0;  // summed over steps
  int64_t encoder_calls = 0;
  int64_t encoded_tokens = 0;
  int64_t padded_tokens = 0;
};

// Requests are served from the present on, each no earlier than its arrival after that. The engine
// is empty before and after.

// One request has the engine to itself until its end; the others wait in line.
Served OneAtATime(model::Engine& engine, Clock& clock, std::span<const Request> requests);

// A batch starts once `batch` requests wait, or the first of them has waited for `timeout` seconds,
// and is decoded to its end; who comes meanwhile waits for the next one. Its sources are encoded
// together, padded to the longest; rows of targets that have ended cost no more.
struct StaticOptions {
  int batch = 32;
  double timeout = 0;
};
Served Static(model::Engine& engine, Clock& clock, std::span<const Request> requests,
              const StaticOptions& options);

// The server's batcher.
Served Continuous(model::Engine& engine, Clock& clock, std::span<const Request> requests,
                  const server::BatcherOptions& options);

// The value that so many percent of the latencies do not exceed.
double Percentile(std::vector<double> values, double percent);

}  // namespace linnet::bench
