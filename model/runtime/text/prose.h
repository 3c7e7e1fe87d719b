#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace linnet::model {

inline constexpr size_t kMaxProseBytes = 64 << 10;  // that are read

// The share of a text that is prose, 0 to 1: the bytes of its words by the bytes of all that is not
// white space. Reads the first kMaxProseBytes of valid UTF-8.
//
// A word has letters only, with a hyphen, an apostrophe or a mark inside; a number counts on a line
// with at least as many bytes of words. What code, tables and links are made of is no word: "a_b",
// "f(x)", "std::string", "camelCase", "docs/API.md", "https://…". No word of a line counts if it
// lies between two fences of Markdown, is a row of a table (cells between | or tabs, or joined by
// commas or semicolons without blanks), or ends like code in a brace or in "):".
double ProseShare(absl::string_view text);

}  // namespace linnet::model
