#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace linnet::model {

// Where the sentences of a line (valid UTF-8, no new line in it) end: ascending byte offsets, the
// last one line.size(). White space after a sentence counts to it.
//
// ICU's rules for the language, less the breaks after abbreviations, initials, ordinals and numbers
// of lists: by our own tables (abbreviations.h) where the language has one, else by ICU's.
absl::StatusOr<std::vector<int>> SentenceEnds(std::string_view line,
                                              std::string_view language_code);

}  // namespace linnet::model
