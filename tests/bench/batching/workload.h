// A synthetic workload: Poisson arrivals, lengths like those of sentences. Deterministic by seed.
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
  double rate = 1;  // arrivals per second
  uint64_t seed = 1;
  int beam_size = 4;
  // Source tokens including the end token: lognormal, median * e^(spread * normal), clamped to the
  // limits. The target length is the source length +- 10 %; the engine masks the end token, so that
  // each target has exactly its length.
  double median_tokens = 20;
  double spread = 0.6;
  int min_tokens = 3;
  int max_tokens = 120;
  int vocabulary_size = 8000;
  model::SpecialTokens special = {};
};

std::vector<Request> MakeWorkload(const WorkloadOptions& options);

}  // namespace linnet::bench
