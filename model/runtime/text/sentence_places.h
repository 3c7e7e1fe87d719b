#pragma once

#include "absl/strings/string_view.h"
#include "model/runtime/text/characters.h"

namespace linnet::model {

// Places in a line where a sentence may end, and which marks belong to it.

constexpr UChar32 kEllipsis = 0x2026;

// The first place in (from, limit) that is behind a mark (. ! ? … or a smiley), the quotes and
// brackets that close after it, and white space; `limit` if there is none. In linear time.
int NextPlace(absl::string_view line, int from, int limit);

// True if text[0, end) ends in an emoji of a face, or in ":-)" and the like behind a blank.
bool IsSmiley(absl::string_view text, int end);

// True if a dash, white space and a double quote are at the start of the text.
bool IsQuoteAfterDash(absl::string_view text);

// The double quotation marks before a place in a line.
struct QuotesBefore {
  bool odd_in_sentence = false;  // one is open
  int open_brackets = 0;         // in the sentence
  bool low_mark = false;         // „ occurs in the line, so that “ closes
  bool opening_mark = false;     // “ or „ occurs in the line, so that ” closes
};

// Counts quotation marks. Each is read once, so calls must go forward.
class QuoteCounter {
 public:
  explicit QuoteCounter(absl::string_view line) : line_(line) {}
  // For the sentence line[begin, end).
  QuotesBefore At(int begin, int end);

 private:
  absl::string_view line_;
  int begin_ = 0;
  int end_ = 0;
  QuotesBefore quotes_;
};

// ICU ends a sentence behind the bracket or quote that opens the next one where there is no white
// space: 。「. Returns the end before it.
int BeforeOpening(absl::string_view line, int begin, int end);

// The end behind marks that belong to the sentence though white space is before them: a closing
// quote or bracket, or the number of a note, "[7]". Returns -1 if a further mark follows them, so
// that the sentence ends later.
int BehindClosing(absl::string_view line, int end, QuotesBefore quotes);

}  // namespace linnet::model
