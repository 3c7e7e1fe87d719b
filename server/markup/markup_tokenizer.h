#pragma once

#include <cstddef>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/markup/character_references.h"

namespace linnet::server {

// An attribute of a tag, as written: its references are not decoded.
struct MarkupAttribute {
  absl::string_view name;
  absl::string_view value;  // empty at an unknown place if the attribute has none
  char quote = '\0';        // '"', '\'' or '\0' for an unquoted value
};

// A part of a fragment, bytes [begin, end). The tokens are the fragment, byte for byte.
struct MarkupToken {
  static constexpr size_t kMaxAttributes = 1024;  // no page has more
  enum class Kind {
    kText,  // with character references
    // Without: the content of script, style and the like, a CDATA section of XML, and in HTML what
    // a template fills in: <%= name %>.
    kCopied,
    kStartTag,  // also <name/>
    kEndTag,
    kOther,  // a comment, a processing instruction, a declaration, a tag that the fragment cuts off
  };
  Kind kind = Kind::kText;
  int begin = 0;
  int end = 0;
  absl::string_view name = {};                   // of a tag, as written
  bool self_closing = false;                     // ends with "/>"
  std::vector<MarkupAttribute> attributes = {};  // the first kMaxAttributes of them
};

// Two names of elements or attributes are the same: in HTML without regard to case.
bool SameName(absl::string_view a, absl::string_view b, MarkupSyntax syntax);

// Reads a fragment of HTML or XML, from left to right, in linear time and without memory of its
// own. There is no error: as in a browser, every text is a fragment. HTML follows the tokenisation
// of the HTML standard (13.2.5), with the contents of raw text elements; XML differs in CDATA
// sections, processing instructions and the internal subset of a DOCTYPE. The fragment must outlive
// it.
class MarkupTokenizer {
 public:
  MarkupTokenizer(absl::string_view fragment, MarkupSyntax syntax)
      : fragment_(fragment), syntax_(syntax) {}

  // Reads the next token; false at the end.
  bool Next(MarkupToken& token);

 private:
  bool StartsMarkup(size_t at);
  bool StartsTemplate(size_t at);
  void ReadMarkup(MarkupToken& token);
  void ReadTag(MarkupToken& token);
  void ReadDeclaration(MarkupToken& token);
  // The offset behind the first `mark` from `at` on, or the end of the fragment.
  size_t Behind(absl::string_view mark, size_t at) const;
  size_t BehindComment(size_t at) const;
  size_t BehindDoctype(size_t at) const;
  size_t EndOfRawText(absl::string_view element) const;
  bool EndsElement(absl::string_view element, size_t at) const;

  absl::string_view fragment_;
  MarkupSyntax syntax_;
  size_t at_ = 0;
  // False if no "%>", or no "?>", comes behind this place.
  bool has_template_end_ = true;
  bool has_php_end_ = true;
  absl::string_view raw_ = {};  // the name of the element whose content comes next
};

}  // namespace linnet::server
