#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace linnet::model {

// Bytes [begin, end) of a text that are decoded as one sequence. Blanks around it belong to no
// segment.
struct TextSegment {
  int begin = 0;
  int end = 0;
  bool part_of_sentence = false;
};

// Returns the number of the model's tokens in a text, including eos.
using TokenCounter = std::function<int(absl::string_view)>;
// Returns the end of the protected span that contains both bytes beside `at`, or `at` if none does.
using SpanEnd = std::function<int(int at)>;

// The max bytes of a segment, which is tokenised at once: 16 KiB, or 32 for each token. Sentences
// have fewer by far, but a run of white space, or of what a model cannot read, is one token however
// long it is.
int64_t MaxSegmentBytes(int max_tokens);

// Splits a text into sentences by ICU's rules for the language (BCP-47), with abbreviations ("Dr.",
// "e.g.", "z. B.") kept together; a new line or a tab always splits. A sentence of more than
// `max_tokens` is split into parts that fit, at clause marks, otherwise at white space, otherwise
// between graphemes (SentenceCutter); the parts have part_of_sentence set. So is one of more than
// MaxSegmentBytes. The segments and the white space between them are the text, byte for byte; a
// text of white space has no segments.
//
// Returns InvalidArgumentError for text that is not UTF-8 (with the byte), or if a single grapheme
// is larger than a segment; OutOfRangeError, as early as possible, for more than `max_segments`.
absl::StatusOr<std::vector<TextSegment>> SplitText(
    absl::string_view text, absl::string_view language_code, int max_tokens,
    const TokenCounter& count_tokens, size_t max_segments = std::numeric_limits<size_t>::max());

// Splits as SplitText does, in steps. Threads may take turns to call it. The text must outlive it.
// No sentence and no line ends inside a protected span; one of more than `max_tokens` is cut there
// like any other.
class TextSplitter {
 public:
  TextSplitter(absl::string_view text, absl::string_view language_code, int max_tokens,
               TokenCounter count_tokens, size_t max_segments = std::numeric_limits<size_t>::max(),
               SpanEnd span_end = nullptr);
  ~TextSplitter();

  // Does about that much work and returns how much it was. The unit is the time to tokenise a byte
  // of prose; a text that takes longer per byte is more work.
  absl::StatusOr<int64_t> Step(int64_t work);
  bool done() const;
  const std::vector<TextSegment>& segments() const;
  std::vector<TextSegment> TakeSegments();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Bytes of the byte order mark (U+FEFF) at the start of a text: 3, or 0 without one. SplitText, and
// callers that read a text as a whole, treat it as white space.
int ByteOrderMarkBytes(absl::string_view text);

// True for a text of white space alone, of any script: SplitText finds no segment in it.
bool IsBlank(absl::string_view text);

// Byte offset of the first byte that is not part of valid UTF-8, or -1.
int FirstInvalidUtf8(absl::string_view text);

}  // namespace linnet::model
