#pragma once

#include <unicode/uchar.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace linnet::model {

// The classes of characters that Moses's rules speak of.
enum LetterClass : uint8_t {
  kSpaceClass = 1,
  kAlphaClass = 2,  // as the detokenizer knows letters
  kAlnumClass = 4,
  kNumberClass = 8,
  kLowerClass = 16,
  kWordMarkClass = 32,  // a letter to the tokenizer only
};

// A character with its classes.
struct Letter {
  UChar32 code = 0;
  uint8_t classes = 0;

  bool is(LetterClass what) const { return (classes & what) != 0; }
};

using Letters = std::vector<Letter>;

// By the tables of sacremoses, which are older and smaller than today's Unicode: letters and digits
// are those of Unicode 7 in the basic plane, and those of Han and Hangul count for languages that
// are written with them alone ("zh", "ja", "ko"); lower case is that of Unicode 9.
Letter LetterOf(UChar32 c, std::string_view language);

// Of UTF-8; bytes that are none become U+FFFD.
Letters LettersOf(std::string_view text, std::string_view language);

// The ideographs, syllables and their marks that the detokenizer joins without blanks.
bool IsCjk(UChar32 c);

}  // namespace linnet::model
