#pragma once

#include <optional>
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

// What becomes of a text that is surely in another language than its model reads.
enum class LanguageCheck {
  kOff,     // nobody looks
  kWarn,    // it is answered with a warning
  kRefuse,  // LANGUAGE_MISMATCH
};

// The language of a text that is surely not in `language` (BCP-47, of which the region and the
// script count for nothing): one that is told apart reliably and has nine tenths of it. Of
// sentences and lines in English one in a thousand is taken for another language, of German ones 96
// in a hundred are seen not to be English (tests/bench/language_check.py).
std::optional<LanguageGuess::Language> OtherLanguage(absl::string_view text,
                                                     absl::string_view language);

}  // namespace linnet::server
