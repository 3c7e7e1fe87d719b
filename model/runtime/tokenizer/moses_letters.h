#pragma once

#include <unicode/uchar.h>

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace linnet::model {

// Character classes of Moses's rules.
enum LetterClass : uint8_t {
  kSpaceClass = 1,
  kAlphaClass = 2,  // letters of the detokenizer
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

// Classifies by the tables of sacremoses, which are older and smaller than current Unicode: letters
// and digits are those of Unicode 7 in the basic plane; Han and Hangul count as letters only in
// languages that use them ("zh", "ja", "ko"); lower case is that of Unicode 9.
Letter ClassifyLetter(UChar32 c, absl::string_view language);

// The letters of UTF-8 text; invalid bytes become U+FFFD.
Letters DecodeLetters(absl::string_view text, absl::string_view language);

// The ideographs, syllables and their marks that the detokenizer joins without blanks.
bool IsCjk(UChar32 c);

}  // namespace linnet::model
