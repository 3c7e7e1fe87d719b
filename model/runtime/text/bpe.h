#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "model/runtime/text/text_map.h"

namespace linnet::model {

// Byte-pair encoding with merge operations that were learned elsewhere (Sennrich, Haddow and Birch
// 2016: Neural Machine Translation of Rare Words with Subword Units). Thread-safe: nothing changes
// after Parse.
//
// Three kinds of files are in use, and the first line tells which: subword-nmt 0.2 ("#version:
// 0.2"; the end of a word is part of its last character), subword-nmt 0.1 (no such line; the end of
// a word is a symbol of its own), and fastBPE (a count behind each pair; words end as in 0.2).
class BpeCodes {
 public:
  // FailedPreconditionError, naming the line, for what is none of these.
  static absl::StatusOr<BpeCodes> Parse(std::string_view contents);

  // Appends the pieces of a word, views into it that together are the word. Work is n log n in its
  // length; there is no cache, for a usual word takes about a microsecond.
  void Split(std::string_view word, std::vector<std::string_view>& pieces) const;

  int merges() const { return static_cast<int>(merges_.size()); }

 private:
  struct Merge {
    int rank = 0;    // the lowest comes first
    int symbol = 0;  // that the pair becomes
  };

  int Intern(std::string_view symbol);
  int Find(std::string_view symbol) const;  // -1 if no merge knows it

  bool end_is_symbol_ = false;
  int end_ = -1;  // that symbol
  TextMap<int> symbols_;
  absl::flat_hash_map<std::pair<int, int>, Merge> merges_;
};

}  // namespace linnet::model
