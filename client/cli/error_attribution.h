// What an error of the server says of the texts that were sent together.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace linnet::client {

enum class Fault {
  kNotTheTexts,  // others would fare no better: an option, the server, the way to it
  kOneText,      // without it the others may be answered
  kTogether,     // fewer of them may be taken
};

struct ErrorAttribution {
  Fault fault = Fault::kNotTheTexts;
  size_t text = 0;  // of kOneText, by its number in the request
};

// Of a call that sent `texts` texts in the field of that name ("contents"). Where a single text is
// too much, it is at fault itself.
ErrorAttribution AttributeError(const absl::Status& status, absl::string_view field, size_t texts);

}  // namespace linnet::client
