#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/markup/markup_tokenizer.h"

namespace linnet::server {

// How a fragment is read.
struct MarkupOptions {
  MarkupSyntax syntax = MarkupSyntax::kHtml;
  bool attributes = false;                    // translate title, alt, placeholder and aria-label
  std::vector<std::string> ignore_tags = {};  // elements that are copied
  // Elements that end segments, and that do not, in place of what HTML says.
  std::vector<std::string> splitting_tags = {};
  std::vector<std::string> non_splitting_tags = {};
};

// Whether an element ends segments, and what is done with its content.
struct ElementKind {
  bool splits = false;  // a block
  bool empty = false;   // has no content and no end tag
  bool copied = false;  // its content is not translated
  // Takes a place in a line, as an image does; other tags without content have no width.
  bool visible = false;
  // Words that touch it on both sides are one, as the options say.
  bool joins = false;
};

// The kind of the element that a start tag begins. In XML all elements are inline, and only the
// options and translate="no" say otherwise.
ElementKind ClassifyElement(const MarkupToken& start_tag, const MarkupOptions& options);

// True if the value of the attribute is a text that MarkupOptions::attributes translates.
bool IsTextAttribute(const MarkupAttribute& attribute, const MarkupOptions& options);

}  // namespace linnet::server
