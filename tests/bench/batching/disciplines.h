// Three disciplines that serve requests with one engine, on a real or a virtual clock.
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
  virtual double Now() = 0;  // seconds since an arbitrary start
  virtual void WaitUntil(double time) = 0;
};

struct Served {
  std::vector<double> latencies;  // from arrival to end, in the order of the requests
  double seconds = 0;             // from the start to the end of the last request
  int64_t steps = 0;
  int64_t rows = 0;  // sum over the steps
  int64_t encoder_calls = 0;
  int64_t encoded_tokens = 0;
  int64_t padded_tokens = 0;
};

// Each function serves the requests from now on, each not before its arrival, which is relative to
// now. The engine is empty before and after.

// Serves one request at a time, in order of arrival.
Served OneAtATime(model::Engine& engine, Clock& clock, std::span<const Request> requests);

// Static batching: a batch starts once `batch` requests wait, or the first has waited for `timeout`
// seconds, and is decoded to its end; later requests wait for the next batch. Sources are encoded
// together, padded to the longest; rows of finished targets cost nothing.
struct StaticOptions {
  int batch = 32;
  double timeout = 0;
};
Served Static(model::Engine& engine, Clock& clock, std::span<const Request> requests,
              const StaticOptions& options);

// Continuous batching with the server's batcher.
Served Continuous(model::Engine& engine, Clock& clock, std::span<const Request> requests,
                  const server::BatcherOptions& options);

// Returns the value that `percent` percent of the values do not exceed.
double Percentile(std::vector<double> values, double percent);

}  // namespace linnet::bench
