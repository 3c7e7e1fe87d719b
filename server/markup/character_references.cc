#include "server/markup/character_references.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace linnet::server {
namespace {

struct NamedReference {
  absl::string_view name;
  absl::string_view text;
  bool bare;  // also without a semicolon
};

constexpr NamedReference kNamed[] = {
#include "server/markup/named_references.inc"
};

// The longest name without a semicolon has six letters, and the shortest two.
constexpr size_t kMaxBareName = 6;
constexpr size_t kMinBareName = 2;

// Windows-1252, which HTML reads in place of the control characters 0x80 to 0x9F; 0 for the same.
constexpr std::array<uint16_t, 32> kWindows1252 = {
    0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017D, 0,      0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178};

const NamedReference* Find(absl::string_view name) {
  const auto* const found = std::lower_bound(
      std::begin(kNamed), std::end(kNamed), name,
      [](const NamedReference& row, absl::string_view wanted) { return row.name < wanted; });
  return found != std::end(kNamed) && found->name == name ? found : nullptr;
}

// `at` is behind "&#".
int DecodeNumber(absl::string_view text, int at, MarkupSyntax syntax, std::string& out) {
  const int size = static_cast<int>(text.size());
  const int begin = at - 2;
  const bool hex =
      at < size && (text[at] == 'x' || (text[at] == 'X' && syntax == MarkupSyntax::kHtml));
  if (hex) ++at;
  const int digits = at;
  uint32_t value = 0;
  for (; at < size; ++at) {
    const char c = text[at];
    if (hex ? !absl::ascii_isxdigit(c) : !absl::ascii_isdigit(c)) break;
    const uint32_t digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    value = std::min<uint32_t>(value * (hex ? 16 : 10) + digit, 0x110000);
  }
  const bool ended = at < size && text[at] == ';';
  if (at == digits || (!ended && syntax == MarkupSyntax::kXml)) return 0;
  if (syntax == MarkupSyntax::kHtml && value >= 0x80 && value < 0xA0 &&
      kWindows1252[value - 0x80] != 0)
    value = kWindows1252[value - 0x80];
  if (value == 0 || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) value = 0xFFFD;
  AppendUtf8(value, out);
  return at + (ended ? 1 : 0) - begin;
}

}  // namespace

void AppendUtf8(uint32_t c, std::string& out) {
  const auto byte = [&out](uint32_t value) { out.push_back(static_cast<char>(value)); };
  if (c < 0x80) return byte(c);
  if (c < 0x800) {
    byte(0xC0 | (c >> 6));
  } else {
    if (c < 0x10000) {
      byte(0xE0 | (c >> 12));
    } else {
      byte(0xF0 | (c >> 18));
      byte(0x80 | ((c >> 12) & 0x3F));
    }
    byte(0x80 | ((c >> 6) & 0x3F));
  }
  byte(0x80 | (c & 0x3F));
}

int EntityLength(absl::string_view text, int at) {
  size_t end = at + 1;
  while (end < text.size() && (absl::ascii_isalnum(text[end]) || text[end] == '_' ||
                               text[end] == '-' || text[end] == '.' || text[end] == ':'))
    ++end;
  const bool is_name = end > static_cast<size_t>(at) + 1 && !absl::ascii_isdigit(text[at + 1]);
  return is_name && end < text.size() && text[end] == ';' ? static_cast<int>(end) + 1 - at : 0;
}

int DecodeReference(absl::string_view text, int at, MarkupSyntax syntax, bool in_attribute,
                    std::string& out) {
  const absl::string_view rest = text.substr(at + 1);
  if (!rest.empty() && rest.front() == '#') return DecodeNumber(text, at + 2, syntax, out);
  // The longest name has 31 letters; a longer run of letters is none, and is not read on.
  size_t size = 0;
  while (size < rest.size() && size < 32 && absl::ascii_isalnum(rest[size])) ++size;
  const absl::string_view name = rest.substr(0, size);
  const bool ended = size < rest.size() && rest[size] == ';';
  if (syntax == MarkupSyntax::kXml) {
    const bool known =
        name == "lt" || name == "gt" || name == "amp" || name == "quot" || name == "apos";
    if (!ended || !known) return 0;
  }
  if (ended) {
    if (const NamedReference* const found = Find(name); found != nullptr) {
      absl::StrAppend(&out, found->text);
      return static_cast<int>(size) + 2;
    }
  }
  for (size_t bare = std::min(size, kMaxBareName); bare >= kMinBareName; --bare) {
    const NamedReference* const found = Find(name.substr(0, bare));
    if (found == nullptr || !found->bare) continue;
    const bool goes_on =
        bare < rest.size() && (absl::ascii_isalnum(rest[bare]) || rest[bare] == '=');
    if (in_attribute && goes_on) return 0;
    absl::StrAppend(&out, found->text);
    return static_cast<int>(bare) + 1;
  }
  return 0;
}

void AppendEscaped(char c, std::string& out) {
  switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    default:
      out.push_back(c);
  }
}

}  // namespace linnet::server
