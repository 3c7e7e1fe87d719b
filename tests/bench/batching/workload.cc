#include "tests/bench/batching/workload.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

namespace linnet::bench {
namespace {

// Draws from the generator without distributions of <random>, which differ between libraries.
class Random {
 public:
  explicit Random(uint64_t seed) : generator_(seed) {}
  double Uniform() { return static_cast<double>(generator_() >> 11) * 0x1p-53; }
  double Exponential() { return -std::log1p(-Uniform()); }
  double Normal() {
    return std::sqrt(2 * Exponential()) * std::cos(2 * std::numbers::pi * Uniform());
  }

 private:
  std::mt19937_64 generator_;
};

}  // namespace

std::vector<Request> MakeWorkload(const WorkloadOptions& options) {
  Random random(options.seed);
  const auto length = [&](double middle, double spread) {
    const double tokens = std::round(middle * std::exp(spread * random.Normal()));
    return static_cast<int>(std::clamp<double>(tokens, options.min_tokens, options.max_tokens));
  };
  std::vector<Request> requests(options.requests);
  double now = 0;
  for (Request& request : requests) {
    request.arrival = now += random.Exponential() / options.rate;
    const int source_tokens = length(options.median_tokens, options.spread);
    const int first = options.special.unk + 1;
    for (int i = 0; i + 1 < source_tokens; ++i) {
      request.input.source.push_back(
          first + static_cast<int>(random.Uniform() * (options.vocabulary_size - first)));
    }
    request.input.source.push_back(options.special.eos);
    model::SearchOptions& search = request.input.options;
    search.beam_size = options.beam_size;
    search.min_target_tokens = search.max_target_tokens = length(source_tokens, 0.1);
  }
  return requests;
}

}  // namespace linnet::bench
