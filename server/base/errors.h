#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/rpc/status.pb.h"

namespace linnet::server {

// Errors as clients of the API see them: a canonical code, a message, and details of
// google/rpc/error_details.proto. The details are payloads of the absl::Status until server/rpc
// converts it into a grpc::Status. Every error carries one ErrorInfo (domain "linnet"), whose
// metadata repeat the dynamic parts of the message.

// ErrorInfo.reason. The table in errors.cc maps each reason to its code, its detail and its
// meaning; docs/ERRORS.md repeats the table.
enum class Reason {
  // INVALID_ARGUMENT: change the request.
  kMalformed,
  kInvalidUtf8,
  kEmpty,
  kMissing,
  kSetTwice,
  kTooManyTexts,
  kTextTooLarge,
  kTooManySegments,
  kBadLanguageCode,
  kLanguageUnknown,
  kLanguageMismatch,
  kBadOption,
  kBadLabel,
  kBadHeader,
  kBadGlossary,
  kBadSetting,
  kWrongTask,
  kWrongLanguages,
  kTextTooLong,
  kUnreadableText,
  kCallTooLarge,
  kBeyondEngine,
  // UNIMPLEMENTED: this version does not support it.
  kUnknownField,
  kUnsupportedFormat,
  // UNAUTHENTICATED and PERMISSION_DENIED: use another token.
  kUnauthenticated,
  kPermissionDenied,
  // NOT_FOUND
  kModelNotFound,
  // FAILED_PRECONDITION, from a reload: fix the files on disk.
  kRegistryUnreadable,
  kModelNotLoaded,
  // RESOURCE_EXHAUSTED: the same request may be answered later.
  kTooManyBytes,
  kTooMuchWork,
  kShareUsed,
  kWaitedTooLong,
  kOutOfMemory,
  // UNAVAILABLE: another server may answer at once.
  kShuttingDown,
  kEngineDown,
  // DEADLINE_EXCEEDED at admission, before any work was done.
  kDeadlineTooClose,
  kDeadlineTooShort,
  // Errors without a more specific reason, named after their codes.
  kCancelled,
  kDeadlineExceeded,
  kInternal,
};

// The details of an error besides its ErrorInfo.
enum class Detail { kNone, kBadRequest, kResourceInfo, kRetryInfo, kRetryInfoAndQuotaFailure };

// A row of the table.
struct ErrorCondition {
  Reason reason;
  absl::string_view name;  // ErrorInfo.reason
  absl::StatusCode code;
  Detail detail;
  absl::string_view meaning;  // when it happens, and what to do
};
std::span<const ErrorCondition> ErrorTable();
const ErrorCondition& GetCondition(Reason reason);

using ErrorMetadata = std::vector<std::pair<std::string, std::string>>;

// The client must change `field`, a path such as "contents[3]" or "options.beam_size".
absl::Status BadField(absl::string_view field, Reason reason, absl::string_view message,
                      ErrorMetadata metadata = {});
// The call has no valid token, or its token does not allow the request.
absl::Status Unauthenticated(absl::string_view message);
absl::Status PermissionDenied(absl::string_view message);
// No such model or language pair. `name` is the requested one.
absl::Status NoSuchModel(absl::string_view name, absl::string_view message);
// A reload failed with `why` and changed nothing.
absl::Status RegistryUnreadable(const absl::Status& why);
// A reload could not load the bundle in `folder`.
absl::Status ModelNotLoaded(absl::string_view folder, const absl::Status& why);
// Busy: retry after `retry_delay`. `subject` names the owner of the exhausted quota.
absl::Status Busy(Reason reason, absl::string_view message, absl::Duration retry_delay,
                  ErrorMetadata metadata = {}, absl::string_view subject = "server");
// An admitted call was shed after waiting for too long.
absl::Status WaitedTooLong(absl::Duration waited, absl::Duration retry_delay);
// The engine has no memory for the call at the moment.
absl::Status OutOfMemory(absl::Duration retry_delay);
// The error of a call whose code has thrown. Call it in a handler; it does not throw.
absl::Status ErrorOfException();
// The answer is not expected before the deadline.
absl::Status DeadlineTooClose(absl::string_view message, ErrorMetadata metadata);
// The answer would be late on an idle server as well: the client's error.
absl::Status DeadlineTooShort(absl::string_view message, ErrorMetadata metadata);
absl::Status ShuttingDown();
// The model's engine failed and is being rebuilt.
absl::Status EngineDown(absl::Duration retry_delay);

// Adds the ErrorInfo of the code if the error has none: for errors of lower layers.
absl::Status WithErrorInfo(absl::Status status);
// Converts an INVALID_ARGUMENT of a lower layer into a BadField; returns any other status
// unchanged.
absl::Status AtField(absl::string_view field, Reason reason, absl::Status status);
// The field of an error that concerns a request as a whole. It is not renamed.
inline constexpr char kWholeRequest[] = "request";
// Replaces the prefix `from` of the error's field path by `to`: for a message that is nested in
// another one. Both are empty or end with their dot: ("", "request."), ("contents[0]", "text").
absl::Status Renamed(absl::string_view from, absl::string_view to, const absl::Status& status);
// Adds `more` behind the message of an error, and behind the description of its field.
absl::Status WithMore(absl::string_view more, const absl::Status& status);
// Adds a google.rpc.RequestInfo.
absl::Status WithRequestId(absl::string_view request_id, absl::Status status);

// The wire form of an error. The message of an INTERNAL error is replaced: it stays in the log.
google::rpc::Status ToProto(const absl::Status& status);
// The delay of the error's RetryInfo; InfiniteDuration without one.
absl::Duration RetryDelay(const absl::Status& status);
// The reason of the error's ErrorInfo; "" without one.
std::string ErrorReason(const absl::Status& status);

}  // namespace linnet::server
