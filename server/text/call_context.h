#pragma once

#include <memory>

#include "absl/time/time.h"
#include "server/base/caller.h"
#include "server/schedule/admission.h"
#include "server/schedule/cancellation.h"

namespace linnet::server {

// What a call brings beside its request.
struct CallContext {
  absl::Time arrived;
  absl::Time deadline = absl::InfiniteFuture();
  // Cancelled by whoever no longer wants the answer. The call cancels it as well, to stop its other
  // segments when one has failed.
  std::shared_ptr<Cancellation> cancelled = std::make_shared<Cancellation>();
  // Holds the memory of the request from its first byte, and that of the reply until it is sent;
  // shared by the call and whoever sends its reply. Without one the call takes its own.
  std::shared_ptr<Permit> permit = nullptr;
  Caller caller = {};  // its call is 0 unless the call is part of another
};

// For what may outlive the call: a permit may not.
inline CallContext WithoutPermit(CallContext context) {
  context.permit = nullptr;
  return context;
}

}  // namespace linnet::server
