#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace linnet::model {

// The ends of the sentences in a line (valid UTF-8 without new lines): ascending byte offsets, the
// last one line.size(). White space after a sentence belongs to it.
//
// Uses ICU's rules for the language, without breaks after abbreviations, initials, ordinals and
// list numbers: by the tables of abbreviations.h if the language has one, otherwise by ICU's
// suppressions.
absl::StatusOr<std::vector<int>> SentenceEnds(absl::string_view line,
                                              absl::string_view language_code);

}  // namespace linnet::model
