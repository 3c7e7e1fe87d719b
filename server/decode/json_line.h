#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/runtime/search.h"
#include "model/runtime/tokenizer.h"

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

  void ApplyTo(model::SearchOptions& options) const;
};

// One line of input: {"text": …} or {"source_ids": […]}, each with "prefix_ids" and "options" if
// wanted.
struct InputLine {
  std::optional<std::string> text;         // one source, not segmented
  std::vector<model::TokenId> source_ids;  // if there is no text
  std::vector<model::TokenId> prefix_ids;
  OptionOverrides options;
};

// InvalidArgumentError for what is not such a line: the JSON, a key that is unknown or twice there,
// a value of another type.
absl::StatusOr<InputLine> ParseInputLine(const std::string& line);

// {"hypotheses":[{"ids":[…],"text":…,"score":…,"token_scores":[…]}]}, without a line end. "text" is
// null without a tokenizer.
std::string FormatHypotheses(std::span<const model::Hypothesis> hypotheses,
                             const model::Tokenizer* tokenizer);

// {"error":{"code":"INVALID_ARGUMENT","message":…}}
std::string FormatError(const absl::Status& status);

}  // namespace linnet::server
