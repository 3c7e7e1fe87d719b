#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace linnet::model {

// The end of an apostrophe in a word that is written as a reference or an escape, as in
// "don&#8217;t", "don\'t" or "don''t"; `at` if none begins there. A model reads it as "'".
size_t EndOfApostrophe(absl::string_view text, size_t at);

}  // namespace linnet::model
