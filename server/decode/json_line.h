#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "linnet/v1/text_service.pb.h"
#include "model/runtime/bundle/bundle.h"
#include "model/runtime/search/constraints.h"
#include "model/runtime/search/search.h"
#include "model/runtime/tokenizer/tokenizer.h"

namespace linnet::server {

// One line of input: {"text": …} or {"source_ids": […]}, with optional "prefix_ids" and "options".
// "target" or "target_ids" is scored instead of searched for. "constraint_ids" are phrases that the
// target must contain. "align" adds the attention to the answer. "source_language" and
// "target_language" choose one of the bundle's pairs, "style" one of the styles of its summaries.
struct InputLine {
  std::optional<std::string> text;
  std::vector<model::TokenId> source_ids;  // if there is no text
  std::optional<std::string> source_language;
  std::optional<std::string> target_language;
  std::optional<std::string> style;
  std::vector<model::TokenId> prefix_ids;
  std::vector<std::vector<model::TokenId>> constraint_ids;
  std::optional<std::string> target;
  std::optional<std::vector<model::TokenId>> target_ids;
  bool align = false;
  linnet::v1::DecodingOptions options;
};

// InvalidArgumentError for invalid JSON, an unknown or duplicate key, or a value of the wrong type.
absl::StatusOr<InputLine> ParseInputLine(const std::string& line);

// Formats {"hypotheses":[{"ids":[…],"text":…,"score":…,"token_scores":[…],"finish_reason":…}]},
// without a newline. "text" is null without a tokenizer. The reason is "STOP", or "LENGTH" if the
// limit on target tokens ended the hypothesis. With attention the first hypothesis has "attention":
// for each of its tokens a list with a weight per source token. With constraints each has
// "unmet_constraints": the indices of the constraints that it does not meet.
std::string FormatHypotheses(std::span<const model::Hypothesis> hypotheses,
                             const model::Tokenizer* tokenizer, std::span<const float> attention,
                             const model::Constraints& constraints);

// The answer to a text that was split.
struct TranslationLine {
  std::string text;
  double score = 0;                        // mean of the segments
  int64_t tokens = 0;                      // of the target, end tokens included
  bool ended_by_limit = false;             // a segment
  std::vector<std::string> warnings = {};  // their reasons
};
// Formats {"translation":{"text":…,"score":…,"tokens":…,"finish_reason":…,"warnings":[…]}}.
std::string FormatTranslation(const TranslationLine& line);

// Formats {"error":{"code":"INVALID_ARGUMENT","message":…}}.
std::string FormatError(const absl::Status& status);

}  // namespace linnet::server
