#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace linnet::model {

// Bytes [begin, end) of a text that are decoded as one sequence. Blanks around it belong to no
// segment.
struct TextSegment {
  int begin = 0;
  int end = 0;
  bool part_of_sentence = false;
};

// Length of a text in the model's tokens, eos counted.
using TokenCounter = std::function<int(std::string_view)>;

// Splits a text into sentences by ICU's rules for the language (BCP-47), with abbreviations ("Dr.",
// "e.g.", "z. B.") kept together; a new line always splits. A sentence of more than `max_tokens` is
// cut at clause marks, else at white space, else between graphemes, into the largest parts that
// fit, and those are marked. Together with the white space between them the segments are the text,
// byte for byte; a text of white space has none.
//
// InvalidArgumentError for text that is not UTF-8 (naming the byte), or if one grapheme alone is
// longer than `max_tokens`. OutOfRangeError, as soon as that is known, for a text that has more
// than `max_segments`.
absl::StatusOr<std::vector<TextSegment>> SplitText(
    std::string_view text, std::string_view language_code, int max_tokens,
    const TokenCounter& count_tokens, size_t max_segments = std::numeric_limits<size_t>::max());

// Bytes of the byte order mark (U+FEFF) at the start of a text: 3, or 0 without one. It is no part
// of what the text says: SplitText and callers that read a text as a whole treat it as white space.
int ByteOrderMarkBytes(std::string_view text);

// Byte offset of the first byte that is not part of valid UTF-8, or -1.
int FirstInvalidUtf8(std::string_view text);

}  // namespace linnet::model
