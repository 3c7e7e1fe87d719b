#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
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

// The text with the case of each character folded (Unicode, CaseFolding.txt, C and S): equal texts
// are the same term where TermFinder ignores case.
std::string FoldCase(absl::string_view text);

// Finds terms in texts: from left to right, the longest at each place, without overlap. Terms match
// whole words; in unspaced scripts, where word boundaries are unknown, they match at any letter.
// The time does not depend on the number of terms: a place takes as many steps as a term has
// characters at most. Immutable, so thread-safe.
class TermFinder {
 public:
  // `terms` are valid UTF-8, none empty. `ignore_case` compares simple case foldings (FoldCase):
  // "straße" does not match "STRASSE".
  TermFinder(const std::vector<std::string>& terms, bool ignore_case);

  std::vector<TermPlace> Find(absl::string_view text) const;
  // The same in parts: adds the terms from `begin` on to `places` until about `work` characters
  // were compared, and subtracts these. Returns where the next part begins: at the end of the text
  // if this is the last one.
  int FindPart(absl::string_view text, int begin, int64_t& work,
               std::vector<TermPlace>& places) const;

 private:
  int32_t Fold(int32_t character) const;
  // Returns the longest term that begins at `begin` and ends at the end of a word.
  std::optional<TermPlace> LongestAt(absl::string_view text, int begin, int64_t& work) const;

  bool ignore_case_;
  // A trie of the folded terms. The child of a node for a character:
  absl::flat_hash_map<std::pair<int, int32_t>, int> children_;
  std::vector<int> term_at_ = {-1};  // the term that ends at a node, or -1; node 0 is the root
};

}  // namespace linnet::model
