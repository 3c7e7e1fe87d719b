#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace linnet::server {

enum class MarkupSyntax { kHtml, kXml };

// The white space of HTML and XML, which a browser folds; a no-break space is none.
inline bool IsMarkupSpace(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

// Decodes the character reference at text[at], which is '&', appends its UTF-8 to `out`, and
// returns its length in bytes; 0 if it is none. HTML: all names of the standard, with the rules for
// those without a semicolon (13.2.5.72 to 80). XML: the five names that need no DTD.
int DecodeReference(absl::string_view text, int at, MarkupSyntax syntax, bool in_attribute,
                    std::string& out);

// The length of "&name;" at text[at], which is '&', or 0. In XML it refers to an entity of a DTD.
int EntityLength(absl::string_view text, int at);

// Appends the UTF-8 of a code point.
void AppendUtf8(uint32_t c, std::string& out);

// Appends a character of text, with '&', '<' and '>' as references.
void AppendEscaped(char c, std::string& out);

}  // namespace linnet::server
