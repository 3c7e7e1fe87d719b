#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "linnet/v1/text_service.pb.h"

namespace linnet::model {

// Options of the search of one sequence, all set: the bundle's defaults, overridden by the request.
// Names are those of linnet.v1.DecodingOptions.
//
// The options of sampling select it instead of beam search: see sampling.h.
struct SearchOptions {
  int beam_size = 5;  // 1 is greedy search; when sampling, the number of targets drawn
  float length_penalty =
      1.0f;  // score = sum of log-probabilities / length^length_penalty, eos counted
  int min_target_tokens = 1;    // eos not counted
  int max_target_tokens = 200;  // eos not counted; eos is forced there
  float unknown_penalty = 0.0f;
  int no_repeat_ngram_size = 0;     // 0 disables the check
  int max_ngram_repeats = 0;        // in a row (repeats.h); 0 disables the check
  float repetition_penalty = 1.0f;  // scales scores of tokens that the target has
  int n_best = 1;                   // number of hypotheses returned, best first
  bool normalize_scores = true;
  float temperature = 1.0f;  // divides the logits
  int top_k = 0;             // sample from the k likeliest tokens; 0: from all
  float top_p = 1.0f;        // and from the fewest that hold this share of the probability
  float min_p = 0.0f;        // and from those with this share of the likeliest one's probability
  std::optional<uint64_t> seed = std::nullopt;  // of sampling; unset: 0

  bool operator==(const SearchOptions&) const = default;
  // The same with the most likely tokens in place of drawn ones.
  SearchOptions WithoutSampling() const {
    SearchOptions options = *this;
    options.top_k = 0;
    options.top_p = 1;
    options.min_p = 0;
    options.seed = std::nullopt;
    return options;
  }
  bool sampling() const { return top_k > 0 || top_p < 1 || min_p > 0 || seed.has_value(); }
};

// An option: its name, its field and its range. Requests, the defaults of bundles, range checks and
// the keys of the answer cache go through this table.
struct SearchOption {
  using Field = std::variant<int SearchOptions::*, float SearchOptions::*, bool SearchOptions::*,
                             std::optional<uint64_t> SearchOptions::*>;
  struct Range {
    double min = -std::numeric_limits<double>::infinity();
    double max = std::numeric_limits<double>::infinity();
    bool above_min = false;  // `min` itself is outside
    const char* note = "";   // of the bound that an error names last: "which leaves out no token"
  };

  // Of the field in linnet.v1.DecodingOptions, and in DecodingDefaults if it is there.
  const char* name;
  Field field;
  Range range = {};      // of a number; see FindBadOption for those that depend on others
  bool samples = false;  // a value other than the default selects sampling
};

inline constexpr SearchOption kSearchOptions[] = {
    {"beam_size", &SearchOptions::beam_size},
    {"length_penalty", &SearchOptions::length_penalty, {.min = 0, .max = 10}},
    {"min_target_tokens", &SearchOptions::min_target_tokens},
    {"max_target_tokens", &SearchOptions::max_target_tokens},
    // Sums of many of them are finite.
    {"unknown_penalty", &SearchOptions::unknown_penalty, {.min = -1e6, .max = 1e6}},
    {"no_repeat_ngram_size",
     &SearchOptions::no_repeat_ngram_size,
     {.min = 0, .note = "which forbids nothing"}},
    {"max_ngram_repeats",
     &SearchOptions::max_ngram_repeats,
     {.min = 0, .note = "which forbids nothing"}},
    {"repetition_penalty", &SearchOptions::repetition_penalty, {.min = 0.1, .max = 10}},
    {"n_best", &SearchOptions::n_best},
    {"normalize_scores", &SearchOptions::normalize_scores},
    // A logit divided by less has no three decimals left in float.
    {"temperature", &SearchOptions::temperature, {.min = 0.01f}},
    {"top_k", &SearchOptions::top_k, {.min = 0, .note = "which leaves out no token"}, true},
    {"top_p",
     &SearchOptions::top_p,
     {.min = 0, .max = 1, .above_min = true, .note = "which leaves out no token"},
     true},
    {"min_p", &SearchOptions::min_p, {.min = 0, .max = 1}, true},
    {"seed", &SearchOptions::seed, {}, true},
};

// "top_k, top_p or seed": the options that select sampling.
std::string NamesOfSampling();

// Sets the options that a message has by fields of their names: DecodingOptions, DecodingDefaults.
void SetOptions(const google::protobuf::Message& message, SearchOptions& options);

// Applies the options that a request sets to the defaults. When sampling without a set beam_size,
// n_best targets are drawn. If only one of the bounds on target tokens is set, the default of the
// other is adjusted to it, at most up to `max_target_tokens`, the limit of the model.
SearchOptions ApplyOverrides(SearchOptions defaults, const linnet::v1::DecodingOptions& overrides,
                             int max_target_tokens);

// Returns the options as a request that sets all of them; the seed only if it is set.
linnet::v1::DecodingOptions AsRequest(const SearchOptions& options);

// Limits of a model and of the engine that runs it.
struct SearchLimits {
  int max_beam_size = 32;
  int max_target_tokens = 200;
  int max_source_tokens = 512;
};

struct BadOption {
  std::string option;   // name of the field
  std::string message;  // "is 9, it must be between 1 and 8"
};
// Returns the first option that is out of its range.
std::optional<BadOption> FindBadOption(const SearchOptions& options, const SearchLimits& limits);

// The same as a status: InvalidArgumentError with the option, its value and its limit.
absl::Status CheckOptions(const SearchOptions& options, const SearchLimits& limits);

}  // namespace linnet::model
