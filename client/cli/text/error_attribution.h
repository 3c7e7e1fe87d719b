// Finds out which of the texts of a request caused an error of the server.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace linnet::client {

enum class Fault {
  kNoText,           // an option, the server or the connection: any text would fail
  kOneText,          // the other texts may be answered without it
  kTooMuchTogether,  // the request is too large: the server may accept fewer texts
  kServerBusy,       // the server has no room for it now, or not before its deadline
  kTooSlow,          // the deadline passed, or an idle server would answer after it as well
};

struct ErrorAttribution {
  Fault fault = Fault::kNoText;
  size_t text = 0;  // for kOneText: the index of the text in the request
};

// Attributes the error of a call that sent `texts` texts in `field` ("contents"). A single text
// that is too large is kOneText.
ErrorAttribution AttributeToTexts(const absl::Status& status, absl::string_view field,
                                  size_t texts);

}  // namespace linnet::client
