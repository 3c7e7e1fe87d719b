#pragma once

#include <unicode/uchar.h>
#include <unicode/uscript.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace linnet::model {

// A code point of a UTF-8 text and its bytes [begin, end). The code point is negative where the
// bytes are not valid UTF-8.
struct Character {
  UChar32 code_point = -1;
  int begin = 0;
  int end = 0;
};

// `at` < text.size().
inline Character CharacterAt(absl::string_view text, int at) {
  if (static_cast<unsigned char>(text[at]) < 0x80) return {text[at], at, at + 1};
  Character character = {.begin = at, .end = at};
  U8_NEXT(text.data(), character.end, static_cast<int>(text.size()), character.code_point);
  return character;
}

// `at` > 0.
inline Character CharacterBefore(absl::string_view text, int at) {
  Character character = {.begin = at, .end = at};
  U8_PREV(text.data(), 0, character.begin, character.code_point);
  return character;
}

// True for letters, digits and combining marks.
inline bool InWord(UChar32 c) {
  if (c >= 0 && c < 0x80) return absl::ascii_isalnum(static_cast<unsigned char>(c));
  return u_isalnum(c) || (U_GET_GC_MASK(c) & U_GC_M_MASK) != 0;
}

// True for scripts without spaces between words: Chinese, Japanese, Thai, Lao, Khmer, Burmese.
inline bool IsUnspacedScript(UChar32 c) {
  constexpr UChar32 kFirst = 0x0E00;  // Thai
  if (c < kFirst) return false;
  UErrorCode error = U_ZERO_ERROR;
  return uscript_breaksBetweenLetters(uscript_getScript(c, &error));
}

// True if both neighbouring characters belong to one word. In unspaced scripts every letter counts
// as a word: matching too often is the lesser error.
inline bool SameWord(UChar32 before, UChar32 after) {
  if (!InWord(before) || !InWord(after)) return false;
  const bool combining = !u_isalnum(after);
  return combining || (!IsUnspacedScript(before) && !IsUnspacedScript(after));
}

// True for quotation marks and closing brackets. The mark that opens in one language closes in
// another: “ in German.
inline bool IsClosing(UChar32 c) {
  const int8_t type = u_charType(c);
  return type == U_END_PUNCTUATION || type == U_FINAL_PUNCTUATION ||
         type == U_INITIAL_PUNCTUATION || c == '"' || c == '\'';
}

inline bool IsWhiteSpace(UChar32 c) { return u_isUWhiteSpace(c); }

// Line feed, vertical tab, form feed, carriage return, next line, line and paragraph separator.
inline bool IsNewLine(UChar32 c) {
  return (c >= 0x0A && c <= 0x0D) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

// A new line or a tab, which separates cells of a table: no sentence goes on behind it.
inline bool IsBreak(UChar32 c) { return c == '\t' || IsNewLine(c); }

// Offset of the first character at or after `at` that is not white space.
inline int SkipWhiteSpace(absl::string_view text, int at) {
  while (at < static_cast<int>(text.size())) {
    const Character character = CharacterAt(text, at);
    if (!IsWhiteSpace(character.code_point)) break;
    at = character.end;
  }
  return at;
}

// Offset after the last character before `at` that is not white space.
inline int SkipWhiteSpaceBefore(absl::string_view text, int at) {
  while (at > 0) {
    const Character character = CharacterBefore(text, at);
    if (!IsWhiteSpace(character.code_point)) break;
    at = character.begin;
  }
  return at;
}

// Splits at every separator, keeping empty parts.
inline std::vector<absl::string_view> PartsOf(absl::string_view text, char separator) {
  std::vector<absl::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace linnet::model
