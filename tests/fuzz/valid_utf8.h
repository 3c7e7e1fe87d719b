#pragma once

#include <string>
#include <utility>

#include "model/runtime/text/segmenter.h"

namespace linnet::fuzz {

// Replaces each byte that is not part of valid UTF-8 with a question mark: most inputs are invalid
// somewhere, and the code after the check must be reached all the same.
inline std::string ReplaceInvalidUtf8(std::string text) {
  for (int byte = 0; (byte = model::FirstInvalidUtf8(text)) >= 0;) text[byte] = '?';
  return text;
}

}  // namespace linnet::fuzz
