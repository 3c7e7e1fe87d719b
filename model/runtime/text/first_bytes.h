#pragma once

#include "absl/strings/string_view.h"

namespace linnet::model {

// At most the first `max_bytes` of a text in UTF-8, cut between two characters.
inline absl::string_view FirstBytes(absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace linnet::model
