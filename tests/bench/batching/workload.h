// Requests as they come: Poisson arrivals, lengths as of sentences. A function of its seed.
#pragma once

#include <cstdint>
#include <vector>

#include "model/runtime/engine.h"

namespace linnet::bench {

struct Request {
  double arrival = 0;  // seconds
  model::SequenceInput input;
};

struct WorkloadOptions {
  int requests = 1000;
  double rate = 1;  // arrivals a second
  uint64_t seed = 1;
  int beam_size = 4;
  // Source tokens, end token counted: lognormal, median * e^(spread * normal), within the limits. A
  // target is as long but for a tenth more or less, and runs to its length whatever the model says
  // (the engine masks the end token).
  double median_tokens = 20;
  double spread = 0.6;
  int min_tokens = 3;
  int max_tokens = 120;
  int vocabulary_size = 8000;
  model::SpecialTokens special = {};
};

std::vector<Request> MakeWorkload(const WorkloadOptions& options);

}  // namespace linnet::bench
