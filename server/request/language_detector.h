#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/request/language_scores.h"

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
// quadgrams. A sentence is usually enough, two or three words often are not; where the language is
// one of a few, ChooseLanguage needs less. `text` is UTF-8. Reading
// kMaxBytesRead of it takes less than a millisecond. Thread-safe.
LanguageGuess DetectLanguage(absl::string_view text);

// The language of a text among those that could be served.
struct LanguageChoice {
  std::string code;       // one of the candidates, the likeliest; empty without a candidate
  float confidence = 0;   // its probability among the candidates, 0 to 1
  bool reliable = false;  // it fits clearly better than the other candidates
  // Set if the text is reliably in none of the candidates.
  std::optional<LanguageGuess::Language> other = std::nullopt;
};

// Chooses among candidates (BCP-47), which makes two or three words enough where few languages can
// be served; figures are in tests/bench/results/detection.json. Among varieties of one language
// it chooses the one that the script and the letters fit better, else the one that CLDR expects for
// the language alone ("pt-BR" of "pt-PT" and "pt-BR"), else the first. Immutable, so thread-safe.
class LanguageChooser {
 public:
  explicit LanguageChooser(const std::vector<std::string>& candidates);
  LanguageChoice Choose(absl::string_view text) const;

 private:
  struct Candidate {
    ScoredLanguage language;
    int distance;  // from the language alone
  };
  std::vector<Candidate> candidates_;
};

// The same for one text.
LanguageChoice ChooseLanguage(absl::string_view text, const std::vector<std::string>& candidates);

// Handling of a text that is reliably detected in another language than its model reads.
enum class LanguageCheck {
  kOff,     // no check
  kWarn,    // answered, with a warning
  kRefuse,  // refused with LANGUAGE_MISMATCH
};

// Returns the language of a text that is reliably not in `language` (BCP-47; region and script are
// ignored): the detection is reliable, covers nine tenths of the text, and fits clearly better. One
// in a thousand English sentences and lines is taken for another language; 96 in a hundred German
// ones are recognised as not English (tests/bench/server/language_check.py).
std::optional<LanguageGuess::Language> OtherLanguage(absl::string_view text,
                                                     absl::string_view language);

}  // namespace linnet::server
