#pragma once

#include <unicode/uchar.h>
#include <unicode/uscript.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace linnet::model {

// A code point of a UTF-8 text and its bytes [begin, end). The code point is negative where the
// bytes are not valid UTF-8.
struct Character {
  UChar32 code_point = -1;
  int begin = 0;
  int end = 0;
};

// `at` < text.size().
inline Character CharacterAt(std::string_view text, int at) {
  Character character = {.begin = at, .end = at};
  U8_NEXT(text.data(), character.end, static_cast<int>(text.size()), character.code_point);
  return character;
}

// `at` > 0.
inline Character CharacterBefore(std::string_view text, int at) {
  Character character = {.begin = at, .end = at};
  U8_PREV(text.data(), 0, character.begin, character.code_point);
  return character;
}

// A letter, a digit, or what is written onto one.
inline bool InWord(UChar32 c) { return u_isalnum(c) || (U_GET_GC_MASK(c) & U_GC_M_MASK) != 0; }

// Of a script that puts nothing between words: Chinese, Japanese, Thai, Lao, Khmer, Burmese.
inline bool SaysNotWhereWordsEnd(UChar32 c) {
  UErrorCode error = U_ZERO_ERROR;
  return uscript_breaksBetweenLetters(uscript_getScript(c, &error));
}

// A word goes on from the one character to the other. Where a script does not say where words end,
// it is taken to end at any letter: what is too much is the lesser fault.
inline bool SameWord(UChar32 before, UChar32 after) {
  if (!InWord(before) || !InWord(after)) return false;
  const bool written_onto_it = !u_isalnum(after);
  return written_onto_it || (!SaysNotWhereWordsEnd(before) && !SaysNotWhereWordsEnd(after));
}

inline bool IsWhiteSpace(UChar32 c) { return u_isUWhiteSpace(c); }

// Line feed, vertical tab, form feed, carriage return, next line, line and paragraph separator.
inline bool IsNewLine(UChar32 c) {
  return (c >= 0x0A && c <= 0x0D) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

// Offset of the first character at or after `at` that is not white space.
inline int SkipWhiteSpace(std::string_view text, int at) {
  while (at < static_cast<int>(text.size())) {
    const Character character = CharacterAt(text, at);
    if (!IsWhiteSpace(character.code_point)) break;
    at = character.end;
  }
  return at;
}

// Offset after the last character before `at` that is not white space.
inline int SkipWhiteSpaceBefore(std::string_view text, int at) {
  while (at > 0) {
    const Character character = CharacterBefore(text, at);
    if (!IsWhiteSpace(character.code_point)) break;
    at = character.begin;
  }
  return at;
}

// What lies between the separators, of which there is one fewer than parts.
inline std::vector<std::string_view> PartsOf(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace linnet::model
