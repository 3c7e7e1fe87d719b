#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace linnet::model {

// Byte-pair encoding with given merge operations (Sennrich, Haddow and Birch 2016: Neural Machine
// Translation of Rare Words with Subword Units). Immutable, so thread-safe.
//
// It reads three file formats, told apart by the first line: subword-nmt 0.2 ("#version: 0.2"; the
// end of a word is part of its last character), subword-nmt 0.1 (no such line; the end of a word is
// a separate symbol), and fastBPE (a count after each pair; words end as in 0.2). Of GPT-2's
// merges.txt, which begins like the first and where a word has no end, the caller knows.
class BpeCodes {
 public:
  // Returns FailedPreconditionError with the line for other contents.
  static absl::StatusOr<BpeCodes> Parse(absl::string_view contents);
  // Reads GPT-2's merges.txt. Lines like "#version: 0.2" are allowed only as the first.
  static absl::StatusOr<BpeCodes> ParseWithoutWordEnds(absl::string_view contents);

  // Appends the pieces of a word, which are views into it. Takes n log n time in its length. There
  // is no cache, since a typical word takes about a microsecond.
  void Split(absl::string_view word, std::vector<absl::string_view>& pieces) const;

 private:
  struct Merge {
    int rank = 0;    // the lowest is applied first
    int symbol = 0;  // the merged symbol
  };

  enum class WordEnd { kInLastCharacter, kSymbol, kNone };

  // Adds the merges of the lines from index `first` on. `counts`: a line may end in a number.
  absl::Status AddMerges(const std::vector<absl::string_view>& lines, size_t first, bool counts);
  int Intern(absl::string_view symbol);
  int Find(absl::string_view symbol) const;  // -1 if it is in no merge

  WordEnd word_end_ = WordEnd::kInLastCharacter;
  int end_ = -1;  // id of the symbol
  absl::flat_hash_map<std::string, int> symbols_;
  absl::flat_hash_map<std::pair<int, int>, Merge> merges_;
};

}  // namespace linnet::model
