#pragma once

#include <span>

#include "absl/strings/string_view.h"

namespace linnet::model {

// Abbreviations of a language whose full stop may not end a sentence. Entries include the stop and
// have no white space: "z.B." also matches "z. B.". Matching is case sensitive, but the first
// letter may be a capital.
struct Abbreviations {
  std::span<const absl::string_view> never_last;  // "Dr.": another word always follows
  std::span<const absl::string_view>
      seldom_last;  // "etc.": ends a sentence only where a `starter` follows
  std::span<const absl::string_view>
      before_number;  // "No.": an abbreviation only where a digit follows
  // Words that, with a capital after an abbreviation, an initial or an ordinal, start a sentence.
  std::span<const absl::string_view> starters;
  bool ordinals_with_stop = false;  // "am 3. Oktober", "Ludwig XIV."
};

// The table of a language ("de"), or null if there is none.
const Abbreviations* AbbreviationsOf(absl::string_view language);

}  // namespace linnet::model
