#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/markup/marked_answer.h"

namespace linnet::server {

// The words of a text, which blanks separate, as bytes of it.
inline std::vector<ByteRange> WordRanges(absl::string_view text) {
  std::vector<ByteRange> words;
  for (int at = 0, size = static_cast<int>(text.size()); at < size; ++at) {
    if (text[at] == ' ' || text[at] == '\n') continue;
    int end = at;
    while (end < size && text[end] != ' ' && text[end] != '\n') ++end;
    words.push_back({at, end});
    at = end;
  }
  return words;
}

// The segments of a plain text: its lines, which also end behind "." and a blank.
inline std::vector<ByteRange> Segments(absl::string_view text) {
  std::vector<ByteRange> segments;
  int begin = -1;
  for (int at = 0, size = static_cast<int>(text.size()); at <= size; ++at) {
    const bool ends =
        at == size || text[at] == '\n' || (text[at] == ' ' && at > 0 && text[at - 1] == '.');
    if (ends && begin >= 0) {
      int end = at;
      while (text[end - 1] == ' ') --end;
      segments.push_back({begin, end});
      begin = -1;
    } else if (!ends && begin < 0 && text[at] != ' ') {
      begin = at;
    }
  }
  return segments;
}

// Writes the answer of a fragment, whose segments `translate` fills.
template <typename Translate>
std::string AnswerOf(const std::string& fragment, const MarkupOptions& options,
                     Translate translate) {
  const MarkedText text(fragment, options);
  MarkedAnswer answer(fragment, text);
  const std::vector<ByteRange> places = Segments(text.text());
  std::string out;
  for (size_t i = 0; i < places.size(); ++i) {
    MarkedAnswer::Segment segment = {.begin = places[i].begin, .end = places[i].end};
    size_t next = i + 1;
    while (next < places.size() && text.AttributeAt(places[next].begin) != nullptr) ++next;
    segment.next_begin =
        next < places.size() ? places[next].begin : static_cast<int>(text.text().size());
    std::string translation;
    translate(absl::string_view(text.text()).substr(segment.begin, segment.end - segment.begin),
              translation, segment);
    segment.translation = translation;
    out += answer.Add(segment).text();
  }
  return out + answer.Finish();
}

}  // namespace linnet::server
