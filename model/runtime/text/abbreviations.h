#pragma once

#include <span>
#include <string_view>

namespace linnet::model {

// What a language writes with a full stop that may not end a sentence. Entries carry the stop and
// no white space: "z.B." stands for "z. B." as well. Case counts, but a first letter may be a
// capital.
struct Abbreviations {
  std::span<const std::string_view> never_last;  // "Dr.": another word always follows
  std::span<const std::string_view>
      seldom_last;  // "etc.": ends a sentence only where a `starter` follows
  std::span<const std::string_view>
      before_number;  // "No.": an abbreviation only where a digit follows
  // Words that start sentences and would not follow an abbreviation, an initial or an ordinal with
  // a capital otherwise.
  std::span<const std::string_view> starters;
  bool ordinals_with_stop = false;  // "am 3. Oktober", "Ludwig XIV."
};

// Of a language ("de"), or null where there is no table of ours.
const Abbreviations* AbbreviationsOf(std::string_view language);

}  // namespace linnet::model
