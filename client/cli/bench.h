// `linnet bench`: a quick look at how fast a server answers.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/cli.h"
#include "client/library/client.h"

namespace linnet::client {

struct BenchOptions {
  std::vector<std::string> texts;  // one a call, in turn; empty: some of ours
  std::string to, from, model;     // without `to`, texts are summarised
  int concurrency = 16;
  absl::Duration duration = absl::Seconds(5);  // of each of the two parts
};

// One call after the other, then `concurrency` at once: a line for each.
int Bench(Client& client, const BenchOptions& options, const Environment& environment);

}  // namespace linnet::client
