#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace linnet::server {

// What a text seems to be written in.
struct LanguageGuess {
  struct Language {
    std::string code;  // BCP-47
    float share = 0;   // of the text, 0 to 1
  };
  std::vector<Language> languages;  // likeliest first, at most three; empty: it cannot be told
  bool reliable = false;

  bool known() const { return reliable && !languages.empty(); }
};

// By CLD2, which knows over 80 languages by their scripts, words and quadruples of letters. A
// sentence is usually enough, two or three words often are not. `text` is UTF-8, of which the first
// 8 KiB are read, which takes less than a millisecond. Thread-safe.
LanguageGuess DetectLanguage(absl::string_view text);

}  // namespace linnet::server
