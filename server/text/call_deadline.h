#pragma once

#include "absl/status/status.h"
#include "server/request/text_request.h"
#include "server/text/call_context.h"

namespace linnet::server {

// The context with the deadline that the server applies. TextCalls sets it once, when a call
// arrives.
CallContext WithServerDeadline(const TextLimits& limits, CallContext context);

// Adds to an error about a deadline that the server set it, if the client did not.
absl::Status ExplainDeadline(const TextLimits& limits, DeadlineSetter setter, absl::Status status);

}  // namespace linnet::server
