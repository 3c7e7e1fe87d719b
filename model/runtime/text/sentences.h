#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace linnet::model {

// The ends of the sentences in a line (valid UTF-8 without new lines): ascending byte offsets, the
// last one line.size(). White space after a sentence belongs to it.
//
// Starts from ICU's rules for the language. A break is left out after an abbreviation, an initial,
// an ordinal or a list number, by whole words of the tables of abbreviations.h, and before text
// that goes on in lower case after a quote. A break is added where ICU sees none: before a dash of
// dialogue, a digit, or a small word that starts sentences, and after "…" and smileys. Quotes and
// brackets that close stay with their sentence. tests/bench/text/sentences.py measures the result.
//
// Takes linear time for any line.
absl::StatusOr<std::vector<int>> SentenceEnds(absl::string_view line,
                                              absl::string_view language_code);

}  // namespace linnet::model
