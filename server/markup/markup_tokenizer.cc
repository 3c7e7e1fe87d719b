#include "server/markup/markup_tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace linnet::server {
namespace {

using Kind = MarkupToken::Kind;

constexpr absl::string_view kRawTextElements[] = {
    "script", "style", "xmp", "iframe", "noembed", "noframes", "title", "textarea", "plaintext"};

// A name starts with a letter; in XML also with '_', ':' or a character beyond ASCII.
bool StartsName(char c, MarkupSyntax syntax) {
  if (absl::ascii_isalpha(c)) return true;
  return syntax == MarkupSyntax::kXml &&
         (c == '_' || c == ':' || static_cast<unsigned char>(c) >= 0x80);
}

}  // namespace

bool SameName(absl::string_view a, absl::string_view b, MarkupSyntax syntax) {
  return syntax == MarkupSyntax::kXml ? a == b : absl::EqualsIgnoreCase(a, b);
}

bool MarkupTokenizer::Next(MarkupToken& token) {
  token.attributes.clear();
  token.name = {};
  token.self_closing = false;
  if (at_ >= fragment_.size()) return false;
  token.begin = static_cast<int>(at_);
  const absl::string_view raw = std::exchange(raw_, {});
  if (!raw.empty()) {
    at_ = EndOfRawText(raw);
    if (at_ > static_cast<size_t>(token.begin)) {
      const bool references = SameName(raw, "title", syntax_) || SameName(raw, "textarea", syntax_);
      token.kind = references ? Kind::kText : Kind::kCopied;
      token.end = static_cast<int>(at_);
      return true;
    }
  }
  if (StartsMarkup(at_)) {
    ReadMarkup(token);
  } else {
    do {
      at_ = std::min(fragment_.find('<', at_ + 1), fragment_.size());
    } while (at_ < fragment_.size() && !StartsMarkup(at_));
    token.kind = Kind::kText;
  }
  token.end = static_cast<int>(at_);
  return true;
}

bool MarkupTokenizer::StartsMarkup(size_t at) {
  if (fragment_[at] != '<' || at + 1 >= fragment_.size()) return false;
  const char next = fragment_[at + 1];
  if (next == '!' || next == '?' || StartsName(next, syntax_)) return true;
  if (next == '%') return StartsTemplate(at);
  if (next != '/' || at + 2 >= fragment_.size()) return false;
  return syntax_ == MarkupSyntax::kHtml || StartsName(fragment_[at + 2], syntax_);
}

// True for what a template of HTML fills in, which may hold ">" and tags: "<% … %>", "<?php … ?>",
// "<?= … ?>".
bool MarkupTokenizer::StartsTemplate(size_t at) {
  if (syntax_ == MarkupSyntax::kXml) return false;
  const absl::string_view rest = fragment_.substr(at);
  const bool php = absl::StartsWithIgnoreCase(rest, "<?php") || absl::StartsWith(rest, "<?=");
  if (!php && !absl::StartsWith(rest, "<%")) return false;
  bool& may_end = php ? has_php_end_ : has_template_end_;
  may_end = may_end && absl::StrContains(rest.substr(2), php ? "?>" : "%>");
  return may_end;
}

size_t MarkupTokenizer::Behind(absl::string_view mark, size_t at) const {
  const size_t found = fragment_.find(mark, at);
  return found == absl::string_view::npos ? fragment_.size() : found + mark.size();
}

// `at` is behind "<!--".
size_t MarkupTokenizer::BehindComment(size_t at) const {
  if (syntax_ == MarkupSyntax::kXml) return Behind("-->", at);
  const absl::string_view rest = fragment_.substr(at);
  if (absl::StartsWith(rest, ">")) return at + 1;
  if (absl::StartsWith(rest, "->")) return at + 2;
  // Either end: "-->" or "--!>".
  for (size_t dashes = fragment_.find("--", at); dashes != absl::string_view::npos;
       dashes = fragment_.find("--", dashes + 1)) {
    const absl::string_view end = fragment_.substr(dashes + 2);
    if (absl::StartsWith(end, ">")) return dashes + 3;
    if (absl::StartsWith(end, "!>")) return dashes + 4;
  }
  return fragment_.size();
}

// `at` is behind "<!DOCTYPE" of XML: its internal subset is in brackets and has quoted values.
size_t MarkupTokenizer::BehindDoctype(size_t at) const {
  bool subset = false;
  for (; at < fragment_.size(); ++at) {
    const char c = fragment_[at];
    if (c == '"' || c == '\'') {
      at = fragment_.find(c, at + 1);
      if (at == absl::string_view::npos) break;
    } else if (c == '[' || c == ']') {
      subset = c == '[';
    } else if (subset && absl::StartsWith(fragment_.substr(at), "<!--")) {
      at = Behind("-->", at + 4) - 1;
    } else if (c == '>' && !subset) {
      return at + 1;
    }
  }
  return fragment_.size();
}

void MarkupTokenizer::ReadDeclaration(MarkupToken& token) {
  const absl::string_view rest = fragment_.substr(at_);
  if (absl::StartsWith(rest, "<!--")) {
    at_ = BehindComment(at_ + 4);
  } else if (syntax_ == MarkupSyntax::kXml && absl::StartsWith(rest, "<![CDATA[")) {
    at_ = Behind("]]>", at_ + 9);
    if (absl::EndsWith(fragment_.substr(token.begin, at_ - token.begin), "]]>"))
      token.kind = Kind::kCopied;
  } else if (syntax_ == MarkupSyntax::kXml && absl::StartsWith(rest, "<!DOCTYPE")) {
    at_ = BehindDoctype(at_ + 9);
  } else {
    at_ = Behind(">", at_);
  }
}

void MarkupTokenizer::ReadMarkup(MarkupToken& token) {
  token.kind = Kind::kOther;
  const char next = fragment_[at_ + 1];
  if (next == '!') return ReadDeclaration(token);
  if (StartsTemplate(at_)) {
    token.kind = Kind::kCopied;
    at_ = Behind(next == '%' ? "%>" : "?>", at_ + 2);
  } else if (next == '?') {
    at_ = Behind(syntax_ == MarkupSyntax::kXml ? "?>" : ">", at_);
  } else if (next == '/' && !StartsName(fragment_[at_ + 2], syntax_)) {
    at_ = Behind(">", at_);
  } else {
    ReadTag(token);
  }
}

void MarkupTokenizer::ReadTag(MarkupToken& token) {
  const size_t size = fragment_.size();
  const bool end_tag = fragment_[at_ + 1] == '/';
  const auto skip_while = [&](auto wanted) {
    const size_t begin = at_;
    while (at_ < size && wanted(fragment_[at_])) ++at_;
    return fragment_.substr(begin, at_ - begin);
  };
  at_ += end_tag ? 2 : 1;
  token.name = skip_while([](char c) { return !IsMarkupSpace(c) && c != '/' && c != '>'; });
  for (;;) {
    skip_while(IsMarkupSpace);
    if (at_ >= size) return;  // cut off
    if (fragment_[at_] == '>') break;
    if (fragment_[at_] == '/') {
      ++at_;
      token.self_closing = at_ < size && fragment_[at_] == '>';
      continue;
    }
    MarkupAttribute attribute;
    const size_t begin = at_++;  // '=' may start a name
    skip_while([](char c) { return !IsMarkupSpace(c) && c != '/' && c != '>' && c != '='; });
    attribute.name = fragment_.substr(begin, at_ - begin);
    skip_while(IsMarkupSpace);
    if (at_ < size && fragment_[at_] == '=') {
      ++at_;
      skip_while(IsMarkupSpace);
      if (at_ >= size) return;
      const char quote = fragment_[at_];
      if (quote == '"' || quote == '\'') {
        ++at_;
        attribute.quote = quote;
        attribute.value = skip_while([quote](char c) { return c != quote; });
        if (at_ >= size) return;
        ++at_;
      } else {
        attribute.value = skip_while([](char c) { return !IsMarkupSpace(c) && c != '>'; });
      }
    }
    if (token.attributes.size() < MarkupToken::kMaxAttributes)
      token.attributes.push_back(attribute);
  }
  ++at_;
  token.kind = end_tag ? Kind::kEndTag : Kind::kStartTag;
  if (end_tag || syntax_ == MarkupSyntax::kXml) return;
  for (const absl::string_view name : kRawTextElements) {
    if (SameName(name, token.name, syntax_)) raw_ = token.name;
  }
}

// True if the end tag of `element` starts at `at`.
bool MarkupTokenizer::EndsElement(absl::string_view element, size_t at) const {
  const absl::string_view rest = fragment_.substr(at + 2);
  if (!absl::StartsWithIgnoreCase(rest, element) || rest.size() == element.size()) return false;
  const char next = rest[element.size()];
  return IsMarkupSpace(next) || next == '/' || next == '>';
}

size_t MarkupTokenizer::EndOfRawText(absl::string_view element) const {
  const size_t size = fragment_.size();
  if (SameName(element, "plaintext", syntax_)) return size;
  // Script data within "<!--" may have script elements, whose end tags end only these.
  const bool script = SameName(element, "script", syntax_);
  bool escaped = false;
  bool in_script = false;
  for (size_t at = at_; at < size; ++at) {
    const char c = fragment_[at];
    if (c != '<' && c != '-') continue;
    const absl::string_view rest = fragment_.substr(at);
    if (absl::StartsWith(rest, "</") && EndsElement(element, at)) {
      if (!in_script) return at;
      in_script = false;
    } else if (!script) {
      continue;
    } else if (absl::StartsWith(rest, "<!--")) {
      if (!escaped) at += 1;  // "<!-->" is a whole comment
      escaped = true;
    } else if (absl::StartsWith(rest, "-->")) {
      escaped = in_script = false;
    } else if (escaped && absl::StartsWithIgnoreCase(rest, "<script") && rest.size() > 7 &&
               (IsMarkupSpace(rest[7]) || rest[7] == '/' || rest[7] == '>')) {
      in_script = true;
    }
  }
  return size;
}

}  // namespace linnet::server
