#pragma once

#include "absl/strings/string_view.h"

namespace linnet::client {

// True if the text is only white space to a server, which refuses such a text as EMPTY: characters
// with Unicode's property White_Space, after a byte order mark at most. An empty text is as well.
bool IsWhiteSpace(absl::string_view text);

}  // namespace linnet::client
