#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "linnet/v1/text_service.pb.h"
#include "model/runtime/text/segmenter.h"
#include "server/request/glossary.h"
#include "server/request/text_request.h"
#include "server/schedule/sequence.h"

namespace linnet::server {

// A segment of a text: the input of the engine and its result.
struct PreparedSegment {
  model::TextSegment place;              // position in its text
  std::string gap;                       // text before it in the answer
  std::vector<model::TokenId> source;    // of its text, eos last, without language tokens
  std::vector<std::string> copies = {};  // texts of the source's placeholders
  std::optional<std::vector<model::TokenId>> target;            // to be scored
  absl::string_view text = {};                                  // borrowed from the request
  std::vector<TermUse> terms = {};                              // glossary entries that apply
  std::shared_ptr<const model::TargetLength> length = nullptr;  // of its summary
  // The answer is a title, whose full stop is left out.
  bool is_title = false;
  SequenceResult result = {};
  // With reranking, parallel to the hypotheses: linnet.v1.Hypothesis.channel_score.
  std::vector<std::optional<float>> channel_scores = {};
};

// One text of a request.
struct PreparedText {
  std::vector<PreparedSegment> segments;
  std::string tail;        // text after the last segment in the answer
  bool truncated = false;  // the end of the text was dropped
  // The language of the text, if it is reliably not the model's.
  std::optional<LanguageGuess::Language> other_language = std::nullopt;
  // The share of prose in a text to summarise, if it is too small for a summary to mean much.
  std::optional<double> prose_share = std::nullopt;
};

// The remaining limits of a call.
struct PrepareLimits {
  int max_segments = std::numeric_limits<int>::max();
  // Holds memory that is about to be allocated, in bytes.
  absl::FunctionRef<absl::Status(int64_t)> hold;
};

// Splits and tokenises one text, and its target, and finds the entries of the request's glossary
// (null if it has none). INVALID_ARGUMENT with the item's path if the model cannot read the text or
// it has too many segments, or the error of `hold`.
absl::StatusOr<PreparedText> PrepareText(const TextRequest& request, const TextItem& item,
                                         const Glossary* glossary, const PrepareLimits& limits);
// The text between two segments of a translation: `gap`, the white space of the source. Languages
// without blanks have none between their sentences, so that a blank is added for a language with
// blanks where the segment before it is in a script without.
std::string GapAfter(absl::string_view before, std::string gap,
                     const std::string& target_language_code);

// The engine's input for a segment.
model::SequenceInput InputOf(const TextRequest& request, const PreparedSegment& segment);

}  // namespace linnet::server
