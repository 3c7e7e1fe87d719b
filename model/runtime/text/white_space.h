#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace linnet::model {

// The text without the white space, of any script, around it. A byte order mark at its start is
// white space.
absl::string_view Trimmed(absl::string_view text);

// The text as the one line that models learn from: trimmed, and with a blank for every line end or
// tab and the white space beside it.
std::string OneLine(absl::string_view text);

// The words of the text in order: what white space, of any script, separates.
std::vector<absl::string_view> WordsOf(absl::string_view text);

// The words, and the runs of marks before, between and behind them, in order; in scripts without
// blanks each letter is a word.
std::vector<absl::string_view> PiecesOf(absl::string_view text);

bool EndsInWhiteSpace(absl::string_view text);

// True if the text ends with a letter or a mark of Chinese, Japanese, Thai or another script
// without blanks, which separates sentences by none.
bool EndsInUnspacedScript(absl::string_view text);

}  // namespace linnet::model
