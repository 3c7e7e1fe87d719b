#include "client/command/text/white_space.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "client/library/utf8.h"

namespace linnet::client {
namespace {

// The characters above U+007F with the property White_Space (PropList.txt of Unicode 15). A table,
// because the client does not link ICU, from which the server has the property.
constexpr absl::string_view kSpacesAboveAscii[] = {"\u0085", "\u00A0", "\u1680", "\u2000", "\u2001",
                                                   "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
                                                   "\u2007", "\u2008", "\u2009", "\u200A", "\u2028",
                                                   "\u2029", "\u202F", "\u205F", "\u3000"};

bool ConsumeSpace(absl::string_view* text) {
  if (absl::ascii_isspace(static_cast<unsigned char>(text->front()))) {
    text->remove_prefix(1);
    return true;
  }
  return std::any_of(std::begin(kSpacesAboveAscii), std::end(kSpacesAboveAscii),
                     [text](absl::string_view space) { return absl::ConsumePrefix(text, space); });
}

}  // namespace

bool IsWhiteSpace(absl::string_view text) {
  absl::ConsumePrefix(&text, kByteOrderMark);
  while (!text.empty()) {
    if (!ConsumeSpace(&text)) return false;
  }
  return true;
}

}  // namespace linnet::client
