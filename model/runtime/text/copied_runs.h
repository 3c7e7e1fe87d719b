#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"

namespace linnet::model {

// Bytes [begin, end) of a text.
struct TextRun {
  int begin = 0;
  int end = 0;
  bool operator==(const TextRun&) const = default;
};

// What a vocabulary makes of a piece of text.
enum class Spelling { kNothing, kSpelled, kUnspellable };

// The runs of `text`, valid UTF-8, that a vocabulary cannot spell, in their order: words with a
// letter that it lacks, and symbols. Of scripts without blanks between words, as much as lies
// together. Runs with nothing but blanks between them are one, and so are the parts of an emoji.
// Where one of `names` stands, in whatever case, it is such a run too: a text that spells the name
// of a placeholder does not mean it.
std::vector<TextRun> FindUnspellable(std::string_view text, std::span<const std::string> names,
                                     absl::FunctionRef<Spelling(std::string_view)> spelling);

// In whatever case.
bool StartsWithName(std::string_view text, std::string_view name);

}  // namespace linnet::model
