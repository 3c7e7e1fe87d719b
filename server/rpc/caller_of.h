#pragma once

#include <grpcpp/grpcpp.h>

#include "server/schedule/caller.h"

namespace linnet::server {

// Who calls: the subject that the connection authenticated, else the client's `x-client-id` (1 to
// 64 visible ASCII characters), else the address without the port; and how urgently, by its
// `x-priority`: "batch", "normal" or "interactive". A header that says something else counts as
// none.
Caller CallerOf(const grpc::CallbackServerContext& context);

}  // namespace linnet::server
