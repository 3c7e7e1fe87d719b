#include "server/text/call_deadline.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/base/errors.h"

namespace linnet::server {

CallContext WithServerDeadline(const TextLimits& limits, CallContext context) {
  const bool has_one = context.deadline != absl::InfiniteFuture();
  const absl::Time latest =
      context.arrived + (has_one ? limits.max_deadline : limits.default_deadline);
  if (latest < context.deadline) {
    context.deadline = latest;
    context.deadline_setter = has_one ? DeadlineSetter::kServerMax : DeadlineSetter::kServerDefault;
  }
  return context;
}

absl::Status ExplainDeadline(const TextLimits& limits, DeadlineSetter setter, absl::Status status) {
  if (setter == DeadlineSetter::kClient) return status;
  const bool has_one = setter == DeadlineSetter::kServerMax;
  const std::string reason = ErrorReason(status);
  const std::string max = absl::FormatDuration(limits.max_deadline);
  if (reason == GetCondition(Reason::kDeadlineTooShort).name ||
      reason == GetCondition(Reason::kDeadlineTooClose).name) {
    return WithMore(has_one ? absl::StrCat(" (the server allows ", max, " at most: max-deadline)")
                            : absl::StrCat(" (the call has none, so the default of ",
                                           absl::FormatDuration(limits.default_deadline),
                                           " applies: set one of at most ", max, ")"),
                    status);
  }
  if (reason != GetCondition(Reason::kDeadlineExceeded).name) return status;
  if (has_one) {
    return WithErrorInfo(absl::DeadlineExceededError(
        absl::StrCat("the call took ", max,
                     ", the max that the server allows (max-deadline): send less "
                     "text at once")));
  }
  return WithErrorInfo(absl::DeadlineExceededError(absl::StrCat(
      "the call had no deadline and took ", absl::FormatDuration(limits.default_deadline),
      ", the default: set one of at most ", max)));
}

}  // namespace linnet::server
