#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/runtime/tokenizer/copied_runs.h"
#include "model/runtime/tokenizer/subwords.h"

namespace linnet::model {

// The spellings of parts of texts by subwords, which must outlive it. A symbol that they read as
// another one, as "TM" for "™", is unspellable. Thread-safe.
class Spellings {
 public:
  explicit Spellings(const Subwords& subwords) : subwords_(subwords) {}
  // That of a single character is kept.
  Spelling Of(absl::string_view text) const;

 private:
  Spelling Find(absl::string_view text) const;
  // True if one of the characters is in no piece, and unspellable by itself: then the text is, and
  // need not be tokenised to see it.
  bool HasUnspellableCharacter(absl::string_view text) const;

  const Subwords& subwords_;
  // By code points of the first two planes: 0, or the Spelling and one. Threads that find it at the
  // same time write the same.
  mutable std::vector<std::atomic<uint8_t>> known_ = std::vector<std::atomic<uint8_t>>(0x20000);
  mutable std::once_flag made_characters_;
  // By code points of the first two planes: whether a piece has it.
  mutable std::vector<bool> characters_;
};

}  // namespace linnet::model
