#pragma once

#include "absl/strings/string_view.h"
#include "model/runtime/text/characters.h"

namespace linnet::model {

// The words around a place where a sentence may end, and what they look like. All of it looks at a
// bounded number of bytes, so that a text without white space takes linear time.

constexpr int kLongestWordAround = 64;  // bytes; a longer word is no abbreviation

// The last word of text[0, end) without brackets and quotes around it; `begin` is where it starts
// with them. Empty if the word is longer than kLongestWordAround.
absl::string_view WordBefore(absl::string_view text, int end, int& begin);

// The first word of the text: letters, marks and digits after dashes, brackets and quotes.
absl::string_view FirstWord(absl::string_view text);

// True for letters of scripts that write their vowels: Latin, Cyrillic and Greek.
bool HasVowels(UChar32 c);
// With or without accents.
bool IsVowel(UChar32 c);
bool IsDash(UChar32 c);
// True for brackets that open and for all quotes.
bool IsOpening(UChar32 c);

// "J.", "J.R.R.", "д.": initials, or the last letter of something like "z. B.".
bool IsInitials(absl::string_view word);
// "f.eks.", "dr.phil.", "d.o.o.": short parts, each with its stop.
bool HasInnerStops(absl::string_view word);
// "3.", "3.10.": groups of one to `longest` digits, each with its stop.
bool IsNumbering(absl::string_view word, int longest);
// "XIV." in capitals.
bool IsRomanNumber(absl::string_view word);
// "iv.": the number of an item of a list.
bool IsSmallRomanNumber(absl::string_view word);
// "Dz.", "mld.": two to four letters of an alphabet with vowels, none of them a vowel. Neither
// acronyms in capitals nor units of measure, which have no stop of their own, are such words.
bool IsVowelless(absl::string_view word);
// Number of letters of a word of letters and one stop, or 0 for any other.
int LettersBeforeStop(absl::string_view word);
// Two or more letters, all of them capitals.
bool IsAllCapitals(absl::string_view word);

}  // namespace linnet::model
