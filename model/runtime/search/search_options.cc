#include "model/runtime/search/search_options.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace linnet::model {
namespace {

constexpr float kMaxLengthPenalty = 10.0f;
// Logits divided by less than this overflow float.
constexpr float kMinTemperature = 1e-6f;

absl::Status OutOfRange(const char* option, auto value, auto min, auto max) {
  return absl::InvalidArgumentError(
      absl::StrCat(option, " is ", value, ", it must be between ", min, " and ", max));
}

}  // namespace

absl::Status CheckOptions(const SearchOptions& options, const SearchLimits& limits) {
  if (options.beam_size < 1 || options.beam_size > limits.max_beam_size) {
    return OutOfRange("beam_size", options.beam_size, 1, limits.max_beam_size);
  }
  if (options.n_best < 1 || options.n_best > options.beam_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("n_best is ", options.n_best,
                     ", it must be between 1 and beam_size, which is ", options.beam_size));
  }
  if (!(options.length_penalty >= 0 && options.length_penalty <= kMaxLengthPenalty)) {
    return OutOfRange("length_penalty", options.length_penalty, 0, kMaxLengthPenalty);
  }
  if (options.max_target_tokens < 0 || options.max_target_tokens > limits.max_target_tokens) {
    return OutOfRange("max_target_tokens", options.max_target_tokens, 0, limits.max_target_tokens);
  }
  if (options.min_target_tokens < 0 || options.min_target_tokens > options.max_target_tokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        "min_target_tokens is ", options.min_target_tokens,
        ", it must be between 0 and max_target_tokens, which is ", options.max_target_tokens));
  }
  if (!std::isfinite(options.unknown_penalty)) {
    return absl::InvalidArgumentError(absl::StrCat("unknown_penalty is ", options.unknown_penalty,
                                                   ", it must be a finite number"));
  }
  if (options.no_repeat_ngram_size < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("no_repeat_ngram_size is ", options.no_repeat_ngram_size,
                     ", it must be at least 0, which forbids nothing"));
  }
  if (!(options.temperature >= kMinTemperature && std::isfinite(options.temperature))) {
    return absl::InvalidArgumentError(absl::StrCat("temperature is ", options.temperature,
                                                   ", it must be a finite number of at least ",
                                                   kMinTemperature));
  }
  if (options.top_k < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "top_k is ", options.top_k, ", it must be at least 0, which leaves out no token"));
  }
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("top_p is ", options.top_p,
                     ", it must be above 0 and at most 1, which leaves out no token"));
  }
  return absl::OkStatus();
}

}  // namespace linnet::model
