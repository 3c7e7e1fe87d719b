#include "model/runtime/text/white_space.h"

#include "model/runtime/text/characters.h"
#include "model/runtime/text/segmenter.h"

namespace linnet::model {
namespace {

// A mark of Chinese or Japanese: as wide as their letters, or the narrow form of one (UAX #11).
bool IsEastAsian(UChar32 c) {
  const int width = u_getIntPropertyValue(c, UCHAR_EAST_ASIAN_WIDTH);
  return width == U_EA_WIDE || width == U_EA_FULLWIDTH || width == U_EA_HALFWIDTH;
}

}  // namespace

absl::string_view Trimmed(absl::string_view text) {
  const int begin = SkipWhiteSpace(text, ByteOrderMarkBytes(text));
  const int end = SkipWhiteSpaceBefore(text, static_cast<int>(text.size()));
  return begin < end ? text.substr(begin, end - begin) : text.substr(text.size());
}

std::string OneLine(absl::string_view text) {
  text = Trimmed(text);
  std::string line;
  for (int at = 0; at < std::ssize(text);) {
    const int word = SkipWhiteSpace(text, at);
    bool breaks = false;
    for (int blank = at; blank < word; blank = CharacterAt(text, blank).end)
      breaks |= IsBreak(CharacterAt(text, blank).code_point);
    if (breaks) line += ' ';
    const int begin = breaks ? word : at, end = CharacterAt(text, word).end;
    line.append(text.data() + begin, end - begin);
    at = end;
  }
  return line;
}

std::vector<absl::string_view> WordsOf(absl::string_view text) {
  std::vector<absl::string_view> words;
  for (int begin = SkipWhiteSpace(text, 0); begin < std::ssize(text);) {
    int end = begin;
    while (end < std::ssize(text) && !IsWhiteSpace(CharacterAt(text, end).code_point))
      end = CharacterAt(text, end).end;
    words.push_back(text.substr(begin, end - begin));
    begin = SkipWhiteSpace(text, end);
  }
  return words;
}

std::vector<absl::string_view> PiecesOf(absl::string_view text) {
  std::vector<absl::string_view> pieces;
  const auto is_mark = [](UChar32 c) { return !IsWhiteSpace(c) && !InWord(c); };
  for (int begin = SkipWhiteSpace(text, 0); begin < std::ssize(text);) {
    Character last = CharacterAt(text, begin);
    while (last.end < std::ssize(text)) {
      const Character next = CharacterAt(text, last.end);
      if (!SameWord(last.code_point, next.code_point) &&
          !(is_mark(last.code_point) && is_mark(next.code_point)))
        break;
      last = next;
    }
    pieces.push_back(text.substr(begin, last.end - begin));
    begin = SkipWhiteSpace(text, last.end);
  }
  return pieces;
}

bool EndsInWhiteSpace(absl::string_view text) {
  const auto size = static_cast<int>(text.size());
  return SkipWhiteSpaceBefore(text, size) < size;
}

bool EndsInUnspacedScript(absl::string_view text) {
  auto end = static_cast<int>(text.size());
  while (end > 0) {
    const Character last = CharacterBefore(text, end);
    if (IsUnspacedScript(last.code_point) || IsEastAsian(last.code_point)) return true;
    if (!IsClosing(last.code_point)) return false;
    end = last.begin;
  }
  return false;
}

}  // namespace linnet::model
