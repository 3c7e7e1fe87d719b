#pragma once

#include <string>
#include <utility>

#include "model/runtime/text/segmenter.h"

namespace linnet::fuzz {

// The text with a question mark for each byte that is not part of valid UTF-8: most inputs are
// wrong somewhere, and what lies behind the check is to be reached all the same.
inline std::string Mended(std::string text) {
  for (int byte = 0; (byte = model::FirstInvalidUtf8(text)) >= 0;) text[byte] = '?';
  return text;
}

}  // namespace linnet::fuzz
