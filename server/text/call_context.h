#pragma once

#include <memory>

#include "absl/time/time.h"
#include "server/admission/admission.h"
#include "server/base/caller.h"
#include "server/schedule/cancellation.h"

namespace linnet::server {

// Who set the deadline of a call. The server sets one with its settings default-deadline and
// max-deadline (call_deadline.h).
enum class DeadlineSetter { kClient, kServerDefault, kServerMax };

// The context of a call beside its request: times, cancellation, permit and caller.
struct CallContext {
  absl::Time arrived;
  absl::Time deadline = absl::InfiniteFuture();
  DeadlineSetter deadline_setter = DeadlineSetter::kClient;
  // Cancelled when the client no longer wants the answer. The call also cancels it itself, to stop
  // its other segments when one has failed.
  std::shared_ptr<Cancellation> cancelled = std::make_shared<Cancellation>();
  // Accounts for the memory of the request from its first byte, and of the reply until it is sent.
  // Shared by the call and the sender of its reply. If null, the call takes its own.
  std::shared_ptr<Permit> permit = nullptr;
  Caller caller = {};  // caller.call is 0 unless this call is part of a document
  // How long its jobs have waited on the text pool before its first stage.
  absl::Duration text_queue = absl::ZeroDuration();
};

// A copy for objects that may outlive the call: a permit must not.
inline CallContext WithoutPermit(CallContext context) {
  context.permit = nullptr;
  return context;
}

}  // namespace linnet::server
