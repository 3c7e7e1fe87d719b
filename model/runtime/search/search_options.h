#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"

namespace linnet::model {

// Options of one sequence's search, every one set: the bundle's defaults with the request's options
// on top. Names are those of linnet.v1.DecodingOptions.
//
// Any of the last three makes the search draw its tokens instead of searching for the best: see
// sampling.h for what is drawn from and by which numbers.
struct SearchOptions {
  int beam_size = 5;  // 1 is greedy search; when sampling, how many targets are drawn
  float length_penalty =
      1.0f;  // score = sum of log-probabilities / length^length_penalty, eos counted
  int min_target_tokens = 1;    // eos not counted
  int max_target_tokens = 200;  // eos not counted; eos is forced there
  float unknown_penalty = 0.0f;
  int no_repeat_ngram_size = 0;  // 0 forbids nothing
  int n_best = 1;                // the best by score of what was found or drawn
  bool normalize_scores = true;
  float temperature = 1.0f;  // divides the logits
  int top_k = 0;             // draw from the k likeliest tokens; 0 = from all
  float top_p = 1.0f;        // and from the fewest that hold this much of the probability
  std::optional<uint64_t> seed = std::nullopt;  // of the draws; unset is 0

  bool sampling() const { return top_k > 0 || top_p < 1 || seed.has_value(); }
};

// What a search may ask for: of the model, and of the engine it runs in.
struct SearchLimits {
  int max_beam_size = 32;
  int max_target_tokens = 200;
  int max_source_tokens = 512;
};

// InvalidArgumentError naming the option, its value and its limit.
absl::Status CheckOptions(const SearchOptions& options, const SearchLimits& limits);

}  // namespace linnet::model
