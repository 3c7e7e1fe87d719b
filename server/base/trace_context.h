#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace linnet::server {

// The trace and span of the client's call. Linnet records no spans of its own; its log lines belong
// to the client's span.
struct TraceContext {
  std::string trace_id;  // 32 lower-case hexadecimal digits; empty: none
  std::string span_id;   // 16 of them
};

// Parses the header `traceparent` of W3C Trace Context, section 3.2. Only the fields of version
// 00 are read, also of later versions. Returns nullopt for an invalid header, which counts as none:
// one that is valid may be sent back.
std::optional<TraceContext> ParseTraceParent(absl::string_view header);

}  // namespace linnet::server
