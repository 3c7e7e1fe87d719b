#pragma once

#include <cstdint>

#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/string_view.h"

namespace linnet::model {

// An occurrence of a term in a text: bytes [begin, end).
struct TermPlace {
  int term = 0;  // number of the term
  int begin = 0;
  int end = 0;
};

// True if the text ends inside a word, so that a following letter would extend it. False after
// letters of unspaced scripts.
bool EndsInWord(absl::string_view text);

// Finds terms in texts: from left to right, the longest at each place, without overlap. Terms match
// whole words; in unspaced scripts, where word boundaries are unknown, they match at any letter.
// Immutable, so thread-safe.
class TermFinder {
 public:
  // `terms` are valid UTF-8, none empty. `ignore_case` compares simple case foldings (Unicode,
  // CaseFolding.txt, C and S): "straße" does not match "STRASSE".
  TermFinder(const std::vector<std::string>& terms, bool ignore_case);

  std::vector<TermPlace> Find(absl::string_view text) const;

 private:
  int32_t Fold(int32_t character) const;
  // End of the term if it is at `at`, otherwise -1.
  int EndAt(const std::vector<int32_t>& term, absl::string_view text, int at) const;

  bool ignore_case_;
  std::vector<std::vector<int32_t>> terms_;                 // folded
  std::unordered_map<int32_t, std::vector<int>> by_first_;  // the longest first
};

}  // namespace linnet::model
