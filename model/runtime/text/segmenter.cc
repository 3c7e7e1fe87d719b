#include "model/runtime/text/segmenter.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/runtime/text/characters.h"
#include "model/runtime/text/clauses.h"
#include "model/runtime/text/sentences.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

// Offset of the first new line or tab at or after `at`, or text.size().
int BreakAfter(absl::string_view text, int at) {
  while (at < text.size()) {
    const Character character = CharacterAt(text, at);
    if (IsBreak(character.code_point)) break;
    at = character.end;
  }
  return at;
}

}  // namespace

absl::StatusOr<std::vector<TextSegment>> SplitText(absl::string_view text,
                                                   absl::string_view language_code, int max_tokens,
                                                   const TokenCounter& count_tokens,
                                                   size_t max_segments) {
  if (text.size() > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("text has ", text.size(), " bytes, at most ",
                                                   std::numeric_limits<int>::max(), " are read"));
  }
  if (const int invalid = FirstInvalidUtf8(text); invalid >= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("text is not UTF-8: byte ", invalid, " is wrong"));
  }
  std::vector<TextSegment> segments;
  for (int line = SkipWhiteSpace(text, ByteOrderMarkBytes(text)); line < text.size();) {
    const int line_end = BreakAfter(text, line);
    ASSIGN_OR_RETURN(const std::vector<int> ends,
                     SentenceEnds(text.substr(line, line_end - line), language_code));
    int begin = line;
    for (int sentence_end : ends) {
      const int end = SkipWhiteSpaceBefore(text, line + sentence_end);
      if (end <= begin) continue;
      if (count_tokens(text.substr(begin, end - begin)) <= max_tokens) {
        segments.push_back({.begin = begin, .end = end});
      } else {
        ASSIGN_OR_RETURN(std::vector<TextSegment> parts,
                         CutSentence(text, begin, end, max_tokens, count_tokens));
        segments.insert(segments.end(), parts.begin(), parts.end());
      }
      if (segments.size() > max_segments) {
        return absl::OutOfRangeError(
            absl::StrCat("text has more than ", max_segments, " segments"));
      }
      begin = SkipWhiteSpace(text, line + sentence_end);
    }
    line = SkipWhiteSpace(text, line_end);
  }
  return segments;
}

int ByteOrderMarkBytes(absl::string_view text) {
  return absl::StartsWith(text, "\xEF\xBB\xBF") ? 3 : 0;
}

bool IsBlank(absl::string_view text) {
  return SkipWhiteSpace(text, ByteOrderMarkBytes(text)) == std::ssize(text);
}

int FirstInvalidUtf8(absl::string_view text) {
  for (int at = 0; at < text.size();) {
    const Character character = CharacterAt(text, at);
    if (character.code_point < 0) return at;
    at = character.end;
  }
  return -1;
}

}  // namespace linnet::model
