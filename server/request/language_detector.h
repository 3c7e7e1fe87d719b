#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace linnet::server {

// The detected languages of a text.
struct LanguageGuess {
  struct Language {
    std::string code;  // BCP-47
    float share = 0;   // of the text, 0 to 1
  };
  std::vector<Language> languages;  // most likely first, at most three; empty: unknown
  bool reliable = false;

  bool known() const { return reliable && !languages.empty(); }
};

// Only so much of a text is read, from its start.
inline constexpr size_t kMaxBytesRead = 8192;

// Detects the language with CLD2, which covers over 80 languages by their scripts, words and
// quadgrams. A sentence is usually enough, two or three words often are not. `text` is UTF-8; to
// read kMaxBytesRead of it takes less than a millisecond. Thread-safe.
LanguageGuess DetectLanguage(absl::string_view text);

// Returns the language among `served` (BCP-47) that a detected language stands for: itself, or the
// first that a detector cannot tell from it or that differs only in script and region ("nb" for
// "no", "pt-BR" for "pt"); `code` if there is none.
std::string ServedLanguage(absl::string_view code, const std::vector<std::string>& served);

// Handling of a text that is reliably detected in another language than its model reads.
enum class LanguageCheck {
  kOff,     // no check
  kWarn,    // answered, with a warning
  kRefuse,  // refused with LANGUAGE_MISMATCH
};

// Returns the language of a text that is reliably not in `language` (BCP-47; region and script are
// ignored): the detection is reliable and covers nine tenths of the text. One in a thousand English
// sentences and lines is taken for another language; 96 in a hundred German ones are recognised as
// not English (tests/bench/server/language_check.py).
std::optional<LanguageGuess::Language> OtherLanguage(absl::string_view text,
                                                     absl::string_view language);

}  // namespace linnet::server
