#pragma once

#include <cstdint>

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace linnet::model {

// Where a term stands in a text: bytes [begin, end).
struct TermPlace {
  int term = 0;  // its number
  int begin = 0;
  int end = 0;
};

// A letter behind it would make another word of its last one. It would not, where scripts put
// nothing between words.
bool EndsInWord(std::string_view text);

// Finds terms in texts: from left to right, the longest where several begin, none inside another.
// A term that begins or ends with a letter or a digit does so where a word does; in a script that
// puts nothing between words, which are not looked up in a dictionary, at any letter. Thread-safe:
// nothing changes after construction.
class TermFinder {
 public:
  // Of valid UTF-8, none empty. Without case, characters are the same whose simple case foldings
  // are (Unicode, CaseFolding.txt, C and S): "straße" is not "STRASSE".
  TermFinder(const std::vector<std::string>& terms, bool ignore_case);

  std::vector<TermPlace> Find(std::string_view text) const;

 private:
  int32_t Fold(int32_t character) const;
  // End of the term where it stands at `at`, or -1.
  int EndAt(const std::vector<int32_t>& term, std::string_view text, int at) const;

  bool ignore_case_;
  std::vector<std::vector<int32_t>> terms_;                 // folded
  std::unordered_map<int32_t, std::vector<int>> by_first_;  // the longest first
};

}  // namespace linnet::model
