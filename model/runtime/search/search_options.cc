#include "model/runtime/search/search_options.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace linnet::model {
namespace {

using linnet::v1::DecodingOptions;

constexpr float kMaxLengthPenalty = 10.0f;
constexpr float kMaxUnknownPenalty = 1e6f;  // sums of many of them are finite
// A logit divided by less than this has no three decimals left in float.
constexpr float kMinTemperature = 0.01f;

std::string OutOfRange(auto value, auto min, auto max) {
  return absl::StrCat("is ", value, ", it must be between ", min, " and ", max);
}

}  // namespace

// Options that others depend on come first, so that the error names the cause.
std::optional<BadOption> FindBadOption(const SearchOptions& options, const SearchLimits& limits) {
  if (options.top_k < 0) {
    return BadOption{"top_k", absl::StrCat("is ", options.top_k,
                                           ", it must be at least 0, which leaves out no token")};
  }
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    return BadOption{"top_p",
                     absl::StrCat("is ", options.top_p,
                                  ", it must be above 0 and at most 1, which leaves out no token")};
  }
  if (options.beam_size < 1 || options.beam_size > limits.max_beam_size)
    return BadOption{"beam_size", OutOfRange(options.beam_size, 1, limits.max_beam_size)};
  if (options.n_best < 1 || options.n_best > options.beam_size) {
    return BadOption{"n_best", absl::StrCat("is ", options.n_best,
                                            ", it must be between 1 and beam_size, which is ",
                                            options.beam_size)};
  }
  if (!(options.length_penalty >= 0 && options.length_penalty <= kMaxLengthPenalty)) {
    return BadOption{"length_penalty", OutOfRange(options.length_penalty, 0, kMaxLengthPenalty)};
  }
  if (!(std::abs(options.unknown_penalty) <= kMaxUnknownPenalty)) {
    return BadOption{"unknown_penalty",
                     OutOfRange(options.unknown_penalty, -kMaxUnknownPenalty, kMaxUnknownPenalty)};
  }
  if (!(options.temperature >= kMinTemperature && std::isfinite(options.temperature))) {
    return BadOption{"temperature",
                     absl::StrCat("is ", options.temperature,
                                  ", it must be a finite number of at least ", kMinTemperature)};
  }
  if (options.max_target_tokens < 0 || options.max_target_tokens > limits.max_target_tokens) {
    return BadOption{"max_target_tokens",
                     OutOfRange(options.max_target_tokens, 0, limits.max_target_tokens)};
  }
  if (options.min_target_tokens < 0 || options.min_target_tokens > options.max_target_tokens) {
    return BadOption{"min_target_tokens",
                     absl::StrCat("is ", options.min_target_tokens,
                                  ", it must be between 0 and max_target_tokens, which is ",
                                  options.max_target_tokens)};
  }
  if (options.no_repeat_ngram_size < 0) {
    return BadOption{"no_repeat_ngram_size",
                     absl::StrCat("is ", options.no_repeat_ngram_size,
                                  ", it must be at least 0, which forbids nothing")};
  }
  if (options.max_ngram_repeats < 0) {
    return BadOption{"max_ngram_repeats",
                     absl::StrCat("is ", options.max_ngram_repeats,
                                  ", it must be at least 0, which forbids nothing")};
  }
  return std::nullopt;
}

absl::Status CheckOptions(const SearchOptions& options, const SearchLimits& limits) {
  const std::optional<BadOption> bad = FindBadOption(options, limits);
  if (!bad.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(bad->option, " ", bad->message));
}

SearchOptions ApplyOverrides(SearchOptions defaults, const DecodingOptions& overrides,
                             int max_target_tokens) {
  SearchOptions merged = defaults;
  if (overrides.has_beam_size()) merged.beam_size = overrides.beam_size();
  if (overrides.has_length_penalty()) merged.length_penalty = overrides.length_penalty();
  if (overrides.has_unknown_penalty()) merged.unknown_penalty = overrides.unknown_penalty();
  if (overrides.has_no_repeat_ngram_size())
    merged.no_repeat_ngram_size = overrides.no_repeat_ngram_size();
  if (overrides.has_max_ngram_repeats()) merged.max_ngram_repeats = overrides.max_ngram_repeats();
  if (overrides.has_n_best()) merged.n_best = overrides.n_best();
  if (overrides.has_normalize_scores()) merged.normalize_scores = overrides.normalize_scores();
  if (overrides.has_temperature()) merged.temperature = overrides.temperature();
  if (overrides.has_top_k()) merged.top_k = overrides.top_k();
  if (overrides.has_top_p()) merged.top_p = overrides.top_p();
  if (overrides.has_seed()) merged.seed = overrides.seed();
  // The default beam is for beam search. When sampling, draw only as many targets as requested.
  if (merged.sampling() && !overrides.has_beam_size()) merged.beam_size = merged.n_best;
  if (overrides.has_min_target_tokens()) {
    merged.min_target_tokens = overrides.min_target_tokens();
    merged.max_target_tokens =
        std::max(merged.max_target_tokens, std::min(merged.min_target_tokens, max_target_tokens));
  }
  if (overrides.has_max_target_tokens()) {
    merged.max_target_tokens = overrides.max_target_tokens();
    if (!overrides.has_min_target_tokens())
      merged.min_target_tokens = std::min(merged.min_target_tokens, merged.max_target_tokens);
  }
  return merged;
}

DecodingOptions AsRequest(const SearchOptions& options) {
  DecodingOptions request;
  request.set_beam_size(options.beam_size);
  request.set_length_penalty(options.length_penalty);
  request.set_min_target_tokens(options.min_target_tokens);
  request.set_max_target_tokens(options.max_target_tokens);
  request.set_unknown_penalty(options.unknown_penalty);
  request.set_no_repeat_ngram_size(options.no_repeat_ngram_size);
  request.set_max_ngram_repeats(options.max_ngram_repeats);
  request.set_n_best(options.n_best);
  request.set_normalize_scores(options.normalize_scores);
  request.set_temperature(options.temperature);
  request.set_top_k(options.top_k);
  request.set_top_p(options.top_p);
  if (options.seed.has_value()) request.set_seed(*options.seed);
  return request;
}

}  // namespace linnet::model
