#include "server/base/trace_context.h"

#include <algorithm>

namespace linnet::server {
namespace {

// version-traceid-spanid-flags: 2, 32, 16 and 2 digits.
constexpr size_t kTraceId = 3;
constexpr size_t kSpanId = 36;
constexpr size_t kFlags = 53;
constexpr size_t kLength = 55;
constexpr size_t kMaxLength = 512;  // of later versions

// gRPC takes any byte in a header that it receives, but aborts on sending one that is not
// printable.
bool IsPrintable(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

bool IsHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool IsId(absl::string_view text) {
  return IsHex(text) && text.find_first_not_of('0') != absl::string_view::npos;
}

}  // namespace

std::optional<TraceContext> ParseTraceParent(absl::string_view header) {
  if (header.size() < kLength || header.size() > kMaxLength || !IsPrintable(header))
    return std::nullopt;
  const absl::string_view version = header.substr(0, 2);
  if (!IsHex(version) || version == "ff") return std::nullopt;
  // A later version may have more fields after another dash.
  if (header.size() > kLength && (version == "00" || header[kLength] != '-')) return std::nullopt;
  for (size_t dash : {kTraceId - 1, kSpanId - 1, kFlags - 1}) {
    if (header[dash] != '-') return std::nullopt;
  }
  const absl::string_view trace_id = header.substr(kTraceId, 32);
  const absl::string_view span_id = header.substr(kSpanId, 16);
  if (!IsId(trace_id) || !IsId(span_id) || !IsHex(header.substr(kFlags, 2))) return std::nullopt;
  return TraceContext{std::string(trace_id), std::string(span_id)};
}

}  // namespace linnet::server
