#include "client/library/utf8.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

namespace linnet::client {
namespace {

struct Range {
  unsigned char low, high;
  bool Holds(unsigned char byte) const { return low <= byte && byte <= high; }
};

// The bytes that follow a leading byte: the number of continuation bytes and the range of the first
// one. 0 continuations: the byte cannot lead.
struct Lead {
  size_t continuations;
  Range second;
};

Lead ReadLead(unsigned char byte) {
  constexpr Range kAny = {0x80, 0xBF};
  if (byte < 0xC2) return {0, {}};  // a continuation byte, or the overlong C0 and C1
  if (byte < 0xE0) return {1, kAny};
  if (byte == 0xE0) return {2, {0xA0, 0xBF}};  // below: overlong
  if (byte == 0xED) return {2, {0x80, 0x9F}};  // above: surrogates
  if (byte < 0xF0) return {2, kAny};
  if (byte == 0xF0) return {3, {0x90, 0xBF}};  // below: overlong
  if (byte < 0xF4) return {3, kAny};
  if (byte == 0xF4) return {3, {0x80, 0x8F}};  // above: past U+10FFFF
  return {0, {}};
}

}  // namespace

std::optional<size_t> FindInvalidUtf8(absl::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      ++i;
      continue;
    }
    const Lead lead = ReadLead(byte);
    if (lead.continuations == 0) return i;
    for (size_t k = 1; k <= lead.continuations; ++k) {
      const Range range = k == 1 ? lead.second : Range{0x80, 0xBF};
      if (i + k >= text.size() || !range.Holds(static_cast<unsigned char>(text[i + k]))) return i;
    }
    i += lead.continuations + 1;
  }
  return std::nullopt;
}

absl::Status CheckUtf8(absl::string_view name, absl::string_view text) {
  const std::optional<size_t> bad = FindInvalidUtf8(text);
  if (!bad.has_value()) return absl::OkStatus();
  const auto byte = [&](size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
  };
  std::string why;
  if (absl::StartsWith(text, "\xFF\xFE") || absl::StartsWith(text, "\xFE\xFF")) {
    why = "; it begins like UTF-16: convert it with iconv -f UTF-16";
  } else if (byte(*bad) == 0xED && byte(*bad + 1) >= 0xA0 && byte(*bad + 2) >= 0x80) {
    why = absl::StrFormat(" is the lone surrogate U+%04X",
                          0xD000 + (byte(*bad + 1) & 0x3F) * 64 + (byte(*bad + 2) & 0x3F));
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is not UTF-8: byte 0x%02x at offset %d%s", name, byte(*bad), *bad, why));
}

}  // namespace linnet::client
