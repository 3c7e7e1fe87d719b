#pragma once

#include <span>

#include "absl/strings/string_view.h"

namespace linnet::model {

// Abbreviations of a language whose full stop may not end a sentence, separated by blanks. Entries
// include the stop and have no white space. Class Abbreviations says how they are compared.
//
// Sources: the shapes of abbreviations and the starters are words that the development splits of
// the Universal Dependencies treebanks have with a stop inside sentences or at their starts (facts
// about words, not their texts); tests/bench/text/sentences.py measures on the test splits. CLDR's
// own suppressions and names of months and days are added from ICU's data at run time.
struct AbbreviationLists {
  absl::string_view language;
  absl::string_view never_last = {};     // titles and the like: another word always follows
  absl::string_view seldom_last = {};    // end a sentence only where a starter follows
  absl::string_view before_number = {};  // only before a number; "*str." is the end of a word
  absl::string_view closing = {};        // "etc.", "B.C.": end a sentence if a capital follows
  absl::string_view measures = {};       // "km.": the same behind a number, otherwise seldom_last
  absl::string_view starters = {};       // words that start a sentence
  absl::string_view not_abbreviations = {};  // CLDR's suppressions that are words
  bool without_cldr = false;                 // CLDR's suppressions are not used at all
  bool ordinals_with_stop = false;           // "am 3. Oktober", "Ludwig XIV."
  bool roman_ordinals_with_stop = false;     // "po II. Vatikánskom"
  bool goes_on_after_mark = false;           // "Nei! roper hun": no break before lower case
  bool vowelless_words = false;              // "prst." may be a word, not only an abbreviation
};

// Parts of one table, by the families of languages.
std::span<const AbbreviationLists> WesternAbbreviations();
std::span<const AbbreviationLists> EasternAbbreviations();

}  // namespace linnet::model
