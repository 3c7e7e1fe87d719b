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

// Errors as callers of the API see them: a canonical code, a message, and details of
// google/rpc/error_details.proto that ride on the absl::Status as payloads until server/rpc turns
// it into a grpc::Status. Every error carries one ErrorInfo (domain "linnet"), whose metadata
// repeat the dynamic parts of the message.

// Why. The table in errors.cc gives each its code, its detail and what it means; docs/ERRORS.md shows it
// to people.
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
  kNoAlignments,
  kBadSetting,
  kWrongTask,
  kWrongLanguages,
  kTextTooLong,
  kUnreadableText,
  kCallTooLarge,
  kBeyondEngine,
  // UNIMPLEMENTED: no server of this version can.
  kUnknownField,
  kUnsupportedFormat,
  // UNAUTHENTICATED and PERMISSION_DENIED: use another token.
  kUnauthenticated,
  kPermissionDenied,
  // NOT_FOUND
  kModelNotFound,
  // FAILED_PRECONDITION: of a reload. Mend what lies on the disk.
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
  // DEADLINE_EXCEEDED before any work was done for it.
  kDeadlineTooClose,
  kDeadlineTooShort,
  // Named after their codes: what has no reason of its own.
  kCancelled,
  kDeadlineExceeded,
  kInternal,
};

// What comes with an error beside its ErrorInfo.
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
const ErrorCondition& ConditionOf(Reason reason);

using ErrorMetadata = std::vector<std::pair<std::string, std::string>>;

// The caller must change `field`, a path such as "contents[3]" or "options.beam_size".
absl::Status BadField(absl::string_view field, Reason reason, absl::string_view message,
                      ErrorMetadata metadata = {});
// The call has no token that the server knows, or its token does not allow what is asked for.
absl::Status Unauthenticated(absl::string_view message);
absl::Status PermissionDenied(absl::string_view message);
// No such model or language pair. `name` is what was asked for.
absl::Status NoSuchModel(absl::string_view name, absl::string_view message);
// A reload that changed nothing, because of `why`.
absl::Status RegistryUnreadable(const absl::Status& why);
// What a reload says of a bundle in `folder`.
absl::Status ModelNotLoaded(absl::string_view folder, const absl::Status& why);
// Busy, try again after `retry_delay`. `subject` is what the exhausted quota belongs to.
absl::Status Busy(Reason reason, absl::string_view message, absl::Duration retry_delay,
                  ErrorMetadata metadata = {}, absl::string_view subject = "server");
// A call that was let in and then had to wait for too long.
absl::Status WaitedTooLong(absl::Duration waited, absl::Duration retry_delay);
// The engine has not the memory for it at this moment.
absl::Status OutOfMemory(absl::Duration retry_delay);
// The answer cannot be expected before the deadline.
absl::Status DeadlineTooClose(absl::string_view message, ErrorMetadata metadata);
// Nor could it be of an idle server: the caller's mistake.
absl::Status DeadlineTooShort(absl::string_view message, ErrorMetadata metadata);
absl::Status ShuttingDown();
// The model's engine failed and is being made again.
absl::Status EngineDown(absl::Duration retry_delay);

// The same error with the ErrorInfo of its code, if it has none: for errors that rise from the
// engine.
absl::Status WithErrorInfo(absl::Status status);
// An INVALID_ARGUMENT that rose from below, put down to a field; any other status as it is.
absl::Status AtField(absl::string_view field, Reason reason, absl::Status status);
// The same error where the path `from` of the field is called `to`: a message that was part of
// another. Both empty or with their dots: ("", "request."), ("contents[0]", "text").
absl::Status Renamed(absl::string_view from, absl::string_view to, const absl::Status& status);
// The same error with a google.rpc.RequestInfo.
absl::Status WithRequestId(absl::string_view request_id, absl::Status status);

// Code, message and details as they travel. The message of an INTERNAL error stays in the log.
google::rpc::Status ToProto(const absl::Status& status);
// InfiniteDuration if the error carries no RetryInfo.
absl::Duration RetryDelay(const absl::Status& status);
// "" if there is none.
std::string ErrorReason(const absl::Status& status);

}  // namespace linnet::server
