#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/runtime/bundle/bundle.h"
#include "model/runtime/search/constraints.h"
#include "model/runtime/search/search.h"
#include "model/runtime/text/tokenizer.h"

namespace linnet::server {

// What a line, or the command line, says about the search; names as in linnet.v1.DecodingOptions.
// The rest stays as it was.
struct OptionOverrides {
  std::optional<int> beam_size;
  std::optional<float> length_penalty;
  std::optional<int> min_target_tokens;
  std::optional<int> max_target_tokens;
  std::optional<float> unknown_penalty;
  std::optional<int> no_repeat_ngram_size;
  std::optional<int> n_best;
  std::optional<bool> normalize_scores;
  std::optional<float> temperature;
  std::optional<int> top_k;
  std::optional<float> top_p;
  std::optional<uint64_t> seed;

  void ApplyTo(model::SearchOptions& options) const;
};

// The bundle's defaults for a source of that many tokens, with overrides on top, later ones above
// earlier ones. Where they sample and none of them says how many targets are drawn, it is n_best.
model::SearchOptions OptionsFor(const model::Bundle& bundle,
                                std::initializer_list<OptionOverrides> overrides,
                                int source_tokens);

// One line of input: {"text": …} or {"source_ids": […]}, each with "prefix_ids" and "options" if
// wanted; or with "target" or "target_ids", which then are scored. With "constraint_ids" the target
// is to contain these phrases, with "align" the answer holds the attention.
struct InputLine {
  std::optional<std::string> text;         // one source, not segmented
  std::vector<model::TokenId> source_ids;  // if there is no text
  std::vector<model::TokenId> prefix_ids;
  std::vector<std::vector<model::TokenId>> constraint_ids;
  std::optional<std::string> target;
  std::optional<std::vector<model::TokenId>> target_ids;
  bool align = false;
  OptionOverrides options;
};

// InvalidArgumentError for what is not such a line: the JSON, a key that is unknown or twice there,
// a value of another type.
absl::StatusOr<InputLine> ParseInputLine(const std::string& line);

// {"hypotheses":[{"ids":[…],"text":…,"score":…,"token_scores":[…]}]}, without a line end. "text" is
// null without a tokenizer. Where there is attention, the first has "attention": a list for each of
// its tokens, of a weight for each of the source's. Where there are constraints, each has
// "unmet_constraints": the numbers of those that it does not meet.
std::string FormatHypotheses(std::span<const model::Hypothesis> hypotheses,
                             const model::Tokenizer* tokenizer, std::span<const float> attention,
                             const model::Constraints& constraints);

// {"error":{"code":"INVALID_ARGUMENT","message":…}}
std::string FormatError(const absl::Status& status);

}  // namespace linnet::server
