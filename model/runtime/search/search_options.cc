#include "model/runtime/search/search_options.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace linnet::model {
namespace {

constexpr float kMaxLengthPenalty = 10.0f;
// Logits divided by less than this overflow float.
constexpr float kMinTemperature = 1e-6f;

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
  if (!std::isfinite(options.unknown_penalty)) {
    return BadOption{"unknown_penalty",
                     absl::StrCat("is ", options.unknown_penalty, ", it must be a finite number")};
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
  return std::nullopt;
}

absl::Status CheckOptions(const SearchOptions& options, const SearchLimits& limits) {
  const std::optional<BadOption> bad = FindBadOption(options, limits);
  if (!bad.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(bad->option, " ", bad->message));
}

SearchOverrides Combine(const SearchOverrides& lower, const SearchOverrides& upper) {
  const auto first = [](const auto& a, const auto& b) { return a.has_value() ? a : b; };
  return {.beam_size = first(upper.beam_size, lower.beam_size),
          .length_penalty = first(upper.length_penalty, lower.length_penalty),
          .min_target_tokens = first(upper.min_target_tokens, lower.min_target_tokens),
          .max_target_tokens = first(upper.max_target_tokens, lower.max_target_tokens),
          .unknown_penalty = first(upper.unknown_penalty, lower.unknown_penalty),
          .no_repeat_ngram_size = first(upper.no_repeat_ngram_size, lower.no_repeat_ngram_size),
          .n_best = first(upper.n_best, lower.n_best),
          .normalize_scores = first(upper.normalize_scores, lower.normalize_scores),
          .temperature = first(upper.temperature, lower.temperature),
          .top_k = first(upper.top_k, lower.top_k),
          .top_p = first(upper.top_p, lower.top_p),
          .seed = first(upper.seed, lower.seed)};
}

SearchOptions ApplyOverrides(SearchOptions defaults, const SearchOverrides& overrides,
                             int max_target_tokens) {
  SearchOptions merged = defaults;
  merged.beam_size = overrides.beam_size.value_or(merged.beam_size);
  merged.length_penalty = overrides.length_penalty.value_or(merged.length_penalty);
  merged.unknown_penalty = overrides.unknown_penalty.value_or(merged.unknown_penalty);
  merged.no_repeat_ngram_size =
      overrides.no_repeat_ngram_size.value_or(merged.no_repeat_ngram_size);
  merged.n_best = overrides.n_best.value_or(merged.n_best);
  merged.normalize_scores = overrides.normalize_scores.value_or(merged.normalize_scores);
  merged.temperature = overrides.temperature.value_or(merged.temperature);
  merged.top_k = overrides.top_k.value_or(merged.top_k);
  merged.top_p = overrides.top_p.value_or(merged.top_p);
  if (overrides.seed.has_value()) merged.seed = overrides.seed;
  // The default beam is for beam search. When sampling, draw only as many targets as requested.
  if (merged.sampling() && !overrides.beam_size.has_value()) merged.beam_size = merged.n_best;
  if (overrides.min_target_tokens.has_value()) {
    merged.min_target_tokens = *overrides.min_target_tokens;
    merged.max_target_tokens =
        std::max(merged.max_target_tokens, std::min(merged.min_target_tokens, max_target_tokens));
  }
  if (overrides.max_target_tokens.has_value()) {
    merged.max_target_tokens = *overrides.max_target_tokens;
    if (!overrides.min_target_tokens.has_value())
      merged.min_target_tokens = std::min(merged.min_target_tokens, merged.max_target_tokens);
  }
  return merged;
}

}  // namespace linnet::model
