#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "model/runtime/text/text_run.h"
#include "model/runtime/tokenizer/names.h"

namespace linnet::model {

// The spelling of a piece of text by a vocabulary.
enum class Spelling { kNothing, kSpelled, kUnspellable };

// Finds the runs of `text`, valid UTF-8, that a vocabulary cannot spell, in order: words with a
// letter that it lacks, and symbols; in unspaced scripts, neighbouring letters that it lacks. Runs
// separated only by blanks are joined, and so are the parts of an emoji. Occurrences of `names` are
// such runs too: a placeholder's name in the text must not act as the placeholder.
std::vector<TextRun> FindUnspellable(absl::string_view text, const Names& names,
                                     absl::FunctionRef<Spelling(absl::string_view)> spelling);

}  // namespace linnet::model
