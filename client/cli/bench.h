// `linnet bench`: a short measurement of a server's latency and throughput.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/cli.h"
#include "client/library/client.h"

namespace linnet::client {

struct BenchOptions {
  std::vector<std::string> texts;  // one per call, in turn; empty: built-in texts
  std::string to, from, model;     // without `to`, texts are summarised
  int concurrency = 16;
  absl::Duration duration = absl::Seconds(5);  // of each of the two parts
};

// Measures sequential calls, then `concurrency` calls at once, and writes a line for each part.
int Bench(Client& client, const BenchOptions& options, const Environment& environment);

}  // namespace linnet::client
