#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "model/runtime/text/segmenter.h"

namespace linnet::model {

// Cuts text[begin, end), a sentence without white space around it that has more than `max_tokens`,
// into the largest parts that fit: at clause marks, else at white space, else between graphemes.
// White space between parts belongs to none.
//
// InvalidArgumentError if one grapheme alone does not fit.
absl::StatusOr<std::vector<TextSegment>> CutSentence(std::string_view text, int begin, int end,
                                                     int max_tokens,
                                                     const TokenCounter& count_tokens);

}  // namespace linnet::model
