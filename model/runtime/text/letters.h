#pragma once

#include "absl/strings/string_view.h"

namespace linnet::model {

// True if the text has a letter of any script: a character of Unicode's general category L, among
// them Chinese and Japanese characters. Digits, Roman numeral characters, punctuation, symbols,
// emoji and white space are none.
bool HasLetter(absl::string_view text);

}  // namespace linnet::model
