#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"

namespace linnet::model {

// Options of one sequence's search, all set: the bundle's defaults, overridden by the request's
// options. Names are those of linnet.v1.DecodingOptions.
//
// Setting any of the last three makes the search sample (sampling.h) instead of searching for the
// best target.
struct SearchOptions {
  int beam_size = 5;  // 1 is greedy search; when sampling, the number of targets
  float length_penalty =
      1.0f;  // score = sum of log-probabilities / length^length_penalty, eos counted
  int min_target_tokens = 1;    // eos not counted
  int max_target_tokens = 200;  // eos not counted; eos is forced there
  float unknown_penalty = 0.0f;
  int no_repeat_ngram_size = 0;  // 0 forbids nothing
  int n_best = 1;                // number of results, best score first
  bool normalize_scores = true;
  float temperature = 1.0f;  // divides the logits
  int top_k = 0;             // sample from the k likeliest tokens; 0 = from all
  float top_p = 1.0f;        // and from the fewest with this probability together
  std::optional<uint64_t> seed = std::nullopt;  // of the draws; unset is 0

  bool sampling() const { return top_k > 0 || top_p < 1 || seed.has_value(); }
};

// Limits of options, set by the model and the engine.
struct SearchLimits {
  int max_beam_size = 32;
  int max_target_tokens = 200;
  int max_source_tokens = 512;
};

// Returns InvalidArgumentError with the option, its value and its limit.
absl::Status CheckOptions(const SearchOptions& options, const SearchLimits& limits);

}  // namespace linnet::model
