#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace linnet::server {

// Where a call stands in the trace of its caller. Linnet records no spans of its own: what it logs
// belongs to the caller's span.
struct TraceContext {
  std::string trace_id;  // 32 lower-case hexadecimal digits; empty: none
  std::string span_id;   // 16 of them
};

// Reads the header `traceparent` of W3C Trace Context, section 3.2: version 00 whole, of a later
// version what it has in common with that. nullopt if it is not valid, which counts as none.
std::optional<TraceContext> ParseTraceParent(absl::string_view header);

}  // namespace linnet::server
