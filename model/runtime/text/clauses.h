#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/runtime/text/segmenter.h"

namespace linnet::model {

// Splits text[begin, end), a sentence of more than `max_tokens` without white space around it, into
// the largest parts that fit: at clause marks, otherwise at white space, otherwise between
// graphemes. White space between parts belongs to none.
//
// Returns InvalidArgumentError if a single grapheme does not fit.
absl::StatusOr<std::vector<TextSegment>> CutSentence(absl::string_view text, int begin, int end,
                                                     int max_tokens,
                                                     const TokenCounter& count_tokens);

}  // namespace linnet::model
