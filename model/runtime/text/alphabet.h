#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace linnet::model {

// The letters of a text, in lower case, and how often each occurs.
using LetterCounts = std::vector<std::pair<char32_t, int>>;

// `text` is UTF-8.
LetterCounts CountLetters(absl::string_view text);

// The letters that a language is usually written with, in CLDR: "ã" is one in Portuguese and not in
// Spanish. Immutable, so thread-safe.
class Alphabet {
 public:
  // `language` is a code with an optional script, "sr-Latn". Of a language that CLDR does not have,
  // every letter counts as one of its own.
  explicit Alphabet(const std::string& language);
  ~Alphabet();

  // Counts the letters that are not in the alphabet.
  int CountOutside(const LetterCounts& letters) const;

 private:
  struct Set;
  std::unique_ptr<const Set> set_;  // null: every letter
};

}  // namespace linnet::model
