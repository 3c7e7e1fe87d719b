#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "model/runtime/text/segmenter.h"
#include "server/base/errors.h"
#include "server/schedule/sequence.h"
#include "server/text/glossary.h"
#include "server/text/text_request.h"

namespace linnet::server {

// A segment of a text on its way: what goes into the engine, and what comes out.
struct SegmentWork {
  model::TextSegment place;  // in its text
  std::string gap;           // what stands before it in the answer
  std::vector<model::TokenId> source;
  std::vector<std::string> copies = {};               // what placeholders of the source stand for
  std::optional<std::vector<model::TokenId>> target;  // that is to be scored
  std::string_view text = {};                         // what it says; borrowed from the request
  std::vector<TermUse> terms = {};                    // of the glossary
  SequenceResult result = {};
};

// One text of a request.
struct TextWork {
  std::vector<SegmentWork> segments;
  std::string tail;        // what stands behind the last segment in the answer
  bool truncated = false;  // its end is in no segment
  // That it is written in, where that is surely not the model's.
  std::optional<LanguageGuess::Language> other_language = std::nullopt;
};

// What a call may still take.
struct PrepareLimits {
  int max_segments = std::numeric_limits<int>::max();
  // Holds so many bytes of memory that are about to be allocated.
  absl::FunctionRef<absl::Status(int64_t)> hold;
};

// Which language the text seems to be in, and which one its model reads: for people, and for
// programs that read the metadata of an error or of a warning.
struct LanguageMismatch {
  LanguageMismatch(const TextRequest& request, const LanguageGuess::Language& seen);
  std::string message;
  ErrorMetadata metadata;
};
// Splits one text as the request asks and tokenises it, and its target. INVALID_ARGUMENT, put down
// to the item's path, if the model cannot read it or if it has too many segments; what `hold` says,
// if that is an error.
absl::StatusOr<TextWork> PrepareText(const TextRequest& request, const TextItem& item,
                                     const PrepareLimits& limits);
// What the engine gets of a segment.
model::SequenceInput InputOf(const TextRequest& request, const SegmentWork& segment);

}  // namespace linnet::server
