// model::SplitText and TextSplitter over any bytes, any language and any limit.

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/runtime/text/segmenter.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/valid_utf8.h"

using linnet::model::FirstInvalidUtf8;
using linnet::model::SplitText;
using linnet::model::TextSegment;
using linnet::model::TextSplitter;

namespace {

bool IsBlank(absl::string_view text) {
  // ASCII white space, and characters that begin with these bytes: U+0085, U+00A0, U+1680, U+2000
  // …, U+3000.
  for (unsigned char c : text) {
    if (c > ' ' && c < 0x80) return false;
  }
  return true;
}

// The segments are the text in order, with blanks between them, and fit.
template <typename Count>
void CheckSegments(absl::string_view text, const std::vector<TextSegment>& segments,
                   const Count& count, int max_tokens) {
  int end = 0;
  for (const TextSegment& segment : segments) {
    FUZZ_CHECK(end <= segment.begin && segment.begin < segment.end);
    FUZZ_CHECK(segment.end <= static_cast<int>(text.size()));
    FUZZ_CHECK(IsBlank(text.substr(end, segment.begin - end)));
    const absl::string_view part = text.substr(segment.begin, segment.end - segment.begin);
    FUZZ_CHECK(FirstInvalidUtf8(std::string(part)) == -1);
    FUZZ_CHECK(count(part) <= max_tokens);
    end = segment.end;
  }
  FUZZ_CHECK(IsBlank(text.substr(end)));
}

// A span is protected from "{" to the next "}".
int EndOfSpan(absl::string_view text, int at) {
  const size_t mark = at == 0 ? absl::string_view::npos : text.find_last_of("{}", at - 1);
  if (mark == absl::string_view::npos || text[mark] == '}') return at;
  const size_t end = text.find('}', at);
  return end == absl::string_view::npos ? at : static_cast<int>(end) + 1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr const char* kLanguages[] = {"en", "de", "zh", "ja", "th", "", "xx-unknown"};
  linnet::fuzz::Input input(data, size);
  const char* language = kLanguages[input.Choose(std::size(kLanguages))];
  const int max_tokens = 2 + input.Choose(26) * 3;
  std::string text = input.Rest();
  const auto count = [](absl::string_view part) { return static_cast<int>(part.size()) + 1; };

  if (FirstInvalidUtf8(text) != -1) {
    FUZZ_CHECK(!SplitText(text, language, max_tokens, count).ok());
    text = linnet::fuzz::ReplaceInvalidUtf8(std::move(text));
  }
  const auto segments = SplitText(text, language, max_tokens, count);
  if (!segments.ok()) {
    FUZZ_CHECK(segments.status().code() == absl::StatusCode::kInvalidArgument);
    return 0;
  }
  CheckSegments(text, *segments, count, max_tokens);

  // In steps, with protected spans: only a part of a sentence ends within one.
  TextSplitter splitter(text, language, max_tokens, count, std::numeric_limits<size_t>::max(),
                        [&text](int at) { return EndOfSpan(text, at); });
  while (!splitter.done()) {
    if (!splitter.Step(100).ok()) return 0;
  }
  CheckSegments(text, splitter.segments(), count, max_tokens);
  for (const TextSegment& segment : splitter.segments()) {
    FUZZ_CHECK(segment.part_of_sentence || EndOfSpan(text, segment.end) == segment.end);
  }
  return 0;
}
