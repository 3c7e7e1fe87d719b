#include "server/markup/elements.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace linnet::server {
namespace {

// Elements whose default style is not inline (15.3 of the HTML standard), with those that a browser
// does not show as text of the line around them, and the names of fields.
constexpr absl::string_view kBlocks[] = {
    "address", "article",   "aside",  "base",     "blockquote", "body",    "br",       "button",
    "caption", "center",    "col",    "colgroup", "dd",         "details", "dialog",   "dir",
    "div",     "dl",        "dt",     "fieldset", "figcaption", "figure",  "footer",   "form",
    "frame",   "frameset",  "h1",     "h2",       "h3",         "h4",      "h5",       "h6",
    "head",    "header",    "hgroup", "hr",       "html",       "legend",  "li",       "listing",
    "label",   "main",      "menu",   "nav",      "noframes",   "ol",      "optgroup", "option",
    "p",       "plaintext", "pre",    "search",   "section",    "select",  "summary",  "table",
    "tbody",   "td",        "tfoot",  "th",       "thead",      "title",   "tr",       "ul",
    "xmp"};
constexpr absl::string_view kEmpty[] = {"area",  "base",  "br",     "col",   "embed",
                                        "frame", "hr",    "img",    "input", "link",
                                        "meta",  "param", "source", "track", "wbr"};
constexpr absl::string_view kCopied[] = {
    "code", "kbd",    "listing", "math", "noembed",  "noframes", "iframe", "plaintext", "pre",
    "samp", "script", "style",   "svg",  "template", "textarea", "var",    "xmp"};
constexpr absl::string_view kInvisible[] = {"area",     "link",   "meta",   "noembed",
                                            "param",    "script", "source", "style",
                                            "template", "track",  "wbr"};
constexpr absl::string_view kTextAttributes[] = {"title", "alt", "placeholder", "aria-label"};

// How an element of HTML is read.
struct HtmlElement {
  bool block = false;
  bool empty = false;
  bool copied = false;
  bool invisible = false;
};

HtmlElement FindHtmlElement(absl::string_view name) {
  static const auto* const elements = [] {
    auto* all = new std::unordered_map<std::string, HtmlElement>;
    for (absl::string_view block : kBlocks) (*all)[std::string(block)].block = true;
    for (absl::string_view empty : kEmpty) (*all)[std::string(empty)].empty = true;
    for (absl::string_view copied : kCopied) (*all)[std::string(copied)].copied = true;
    for (absl::string_view invisible : kInvisible) (*all)[std::string(invisible)].invisible = true;
    return all;
  }();
  constexpr size_t kLongest = 10;  // "blockquote"
  if (name.size() > kLongest) return {};
  const auto found = elements->find(absl::AsciiStrToLower(name));
  return found == elements->end() ? HtmlElement() : found->second;
}

template <typename List>
bool Has(const List& names, absl::string_view name, MarkupSyntax syntax) {
  return std::any_of(std::begin(names), std::end(names),
                     [&](absl::string_view each) { return SameName(each, name, syntax); });
}

// What the attributes say: translate="no", and in HTML class="notranslate".
bool IsMarkedAsCopied(const MarkupToken& tag, MarkupSyntax syntax) {
  return std::any_of(
      tag.attributes.begin(), tag.attributes.end(), [&](const MarkupAttribute& attribute) {
        if (SameName(attribute.name, "translate", syntax) ||
            (syntax == MarkupSyntax::kXml && attribute.name == "its:translate"))
          return absl::EqualsIgnoreCase(attribute.value, "no");
        if (syntax == MarkupSyntax::kXml || !SameName(attribute.name, "class", syntax))
          return false;
        const std::vector<absl::string_view> classes =
            absl::StrSplit(attribute.value, absl::ByAnyChar(" \t\n\f\r"), absl::SkipEmpty());
        return std::find(classes.begin(), classes.end(), "notranslate") != classes.end();
      });
}

}  // namespace

ElementKind ClassifyElement(const MarkupToken& start_tag, const MarkupOptions& options) {
  const absl::string_view name = start_tag.name;
  const MarkupSyntax syntax = options.syntax;
  const bool html = syntax == MarkupSyntax::kHtml;
  const HtmlElement standard = html ? FindHtmlElement(name) : HtmlElement();
  ElementKind kind;
  kind.splits = standard.block;
  if (Has(options.splitting_tags, name, syntax)) kind.splits = true;
  if (Has(options.non_splitting_tags, name, syntax)) kind.splits = false;
  kind.copied = standard.copied || Has(options.ignore_tags, name, syntax) ||
                IsMarkedAsCopied(start_tag, syntax);
  // HTML reads "/>" only in SVG and MathML, which are copied as a whole.
  kind.empty =
      html ? standard.empty || (start_tag.self_closing && kind.copied &&
                                (SameName(name, "svg", syntax) || SameName(name, "math", syntax)))
           : start_tag.self_closing;
  kind.visible = (kind.empty || kind.copied) && !standard.invisible;
  kind.joins = kind.empty && Has(options.non_splitting_tags, name, syntax);
  return kind;
}

bool IsTextAttribute(const MarkupAttribute& attribute, const MarkupOptions& options) {
  return options.attributes && Has(kTextAttributes, attribute.name, options.syntax);
}

}  // namespace linnet::server
