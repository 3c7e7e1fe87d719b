#include "server/base/errors.h"

#include <algorithm>
#include <exception>
#include <new>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "google/rpc/error_details.pb.h"

namespace linnet::server {
namespace {

constexpr char kTypePrefix[] = "type.googleapis.com/";
constexpr char kDomain[] = "linnet";

using Code = absl::StatusCode;

// In the order of Reason.
constexpr ErrorCondition kTable[] = {
    {Reason::kMalformed, "MALFORMED", Code::kInvalidArgument, Detail::kBadRequest,
     "The bytes cannot be parsed as a message of the method's type."},
    {Reason::kInvalidUtf8, "INVALID_UTF8", Code::kInvalidArgument, Detail::kBadRequest,
     "A text is not UTF-8; the message names the first byte that is wrong."},
    {Reason::kEmpty, "EMPTY", Code::kInvalidArgument, Detail::kBadRequest,
     "There is no text, or one of them is empty or nothing but white space."},
    {Reason::kMissing, "MISSING", Code::kInvalidArgument, Detail::kBadRequest,
     "A field that is required is not set."},
    {Reason::kSetTwice, "SET_TWICE", Code::kInvalidArgument, Detail::kBadRequest,
     "Two fields for the same setting are set: set only one of them."},
    {Reason::kTooManyTexts, "TOO_MANY_TEXTS", Code::kInvalidArgument, Detail::kBadRequest,
     "More texts than one message may hold: send the rest in another."},
    {Reason::kTextTooLarge, "TEXT_TOO_LARGE", Code::kInvalidArgument, Detail::kBadRequest,
     "More bytes of text than one call may hold: send the rest in another."},
    {Reason::kTooManySegments, "TOO_MANY_SEGMENTS", Code::kInvalidArgument, Detail::kBadRequest,
     "More sentences and lines than one call may hold: send the rest in another."},
    {Reason::kBadLanguageCode, "BAD_LANGUAGE_CODE", Code::kInvalidArgument, Detail::kBadRequest,
     "Not a language code of BCP-47."},
    {Reason::kLanguageUnknown, "LANGUAGE_UNKNOWN", Code::kInvalidArgument, Detail::kBadRequest,
     "The language of the text could not be detected among those that could be served: set the "
     "source language, or a model."},
    {Reason::kLanguageMismatch, "LANGUAGE_MISMATCH", Code::kInvalidArgument, Detail::kBadRequest,
     "The text was detected with certainty as another language than the model reads, and this "
     "server refuses that (language-check): name a model for it."},
    {Reason::kBadOption, "BAD_OPTION", Code::kInvalidArgument, Detail::kBadRequest,
     "A decoding option is outside its range."},
    {Reason::kBadLabel, "BAD_LABEL", Code::kInvalidArgument, Detail::kBadRequest,
     "Too many labels, or one with characters other than lower-case letters, digits, '_' and '-'."},
    {Reason::kBadHeader, "BAD_HEADER", Code::kInvalidArgument, Detail::kBadRequest,
     "A header of the call has a value that is not allowed, or is sent twice; the field is its "
     "name."},
    {Reason::kBadGlossary, "BAD_GLOSSARY", Code::kInvalidArgument, Detail::kBadRequest,
     "The glossary is too large, or an entry of it cannot be applied."},
    {Reason::kBadSetting, "BAD_SETTING", Code::kInvalidArgument, Detail::kBadRequest,
     "A field has no meaning here, or its value is not one that the API defines."},
    {Reason::kWrongTask, "WRONG_TASK", Code::kInvalidArgument, Detail::kBadRequest,
     "The model that was named has another task."},
    {Reason::kWrongLanguages, "WRONG_LANGUAGES", Code::kInvalidArgument, Detail::kBadRequest,
     "The model that was named has other languages."},
    {Reason::kTextTooLong, "TEXT_TOO_LONG", Code::kInvalidArgument, Detail::kBadRequest,
     "More tokens than the model reads at once: shorten the text, or set long_input of Summarize "
     "to "
     "chunk."},
    {Reason::kUnreadableText, "UNREADABLE_TEXT", Code::kInvalidArgument, Detail::kBadRequest,
     "The text could not be split or tokenised; the message says where."},
    {Reason::kCallTooLarge, "CALL_TOO_LARGE", Code::kInvalidArgument, Detail::kBadRequest,
     "The call alone is more work, or takes more memory, than the server gives a call: send less "
     "text at once, or ask for fewer hypotheses or no alignments."},
    {Reason::kBeyondEngine, "BEYOND_ENGINE", Code::kInvalidArgument, Detail::kBadRequest,
     "The engine has too few rows or too little memory for this request, even when it is idle."},
    {Reason::kUnknownField, "UNKNOWN_FIELD", Code::kUnimplemented, Detail::kBadRequest,
     "A field is set that this version does not know: unknown fields are refused, not ignored."},
    {Reason::kUnsupportedFormat, "UNSUPPORTED_FORMAT", Code::kUnimplemented, Detail::kBadRequest,
     "The format of the text is not supported: send text/plain."},
    {Reason::kUnauthenticated, "UNAUTHENTICATED", Code::kUnauthenticated, Detail::kNone,
     "The call has no token that the server knows: send the header authorization, or a new token."},
    {Reason::kPermissionDenied, "PERMISSION_DENIED", Code::kPermissionDenied, Detail::kNone,
     "The token is known and does not allow this: use one that does."},
    {Reason::kModelNotFound, "MODEL_NOT_FOUND", Code::kNotFound, Detail::kResourceInfo,
     "No model has that name or those languages; the message lists what there is."},
    {Reason::kRegistryUnreadable, "REGISTRY_UNREADABLE", Code::kFailedPrecondition, Detail::kNone,
     "The folder of models could not be read again, or holds no model: the models that were served "
     "remain served."},
    {Reason::kModelNotLoaded, "MODEL_NOT_LOADED", Code::kFailedPrecondition, Detail::kNone,
     "In the answer of Reload, for one bundle: the message gives the cause; the previous version, "
     "if "
     "there was one, remains served."},
    {Reason::kTooManyBytes, "TOO_MANY_BYTES", Code::kResourceExhausted,
     Detail::kRetryInfoAndQuotaFailure,
     "The memory for calls is in use up to its limit: retry after the delay."},
    {Reason::kTooMuchWork, "TOO_MUCH_WORK", Code::kResourceExhausted,
     Detail::kRetryInfoAndQuotaFailure,
     "The admitted work has reached its limit: retry after the delay."},
    {Reason::kShareUsed, "SHARE_USED", Code::kResourceExhausted, Detail::kRetryInfoAndQuotaFailure,
     "The server has room, but this client has used its share: retry after the delay."},
    {Reason::kWaitedTooLong, "WAITED_TOO_LONG", Code::kResourceExhausted,
     Detail::kRetryInfoAndQuotaFailure,
     "The server is overloaded and shed the call, which had waited too long and not started: retry "
     "after the delay."},
    {Reason::kOutOfMemory, "OUT_OF_MEMORY", Code::kResourceExhausted,
     Detail::kRetryInfoAndQuotaFailure,
     "The engine has too little memory for the call besides the others: retry after the delay."},
    {Reason::kShuttingDown, "SHUTTING_DOWN", Code::kUnavailable, Detail::kRetryInfo,
     "The server is shutting down: retry, or use another server."},
    {Reason::kEngineDown, "ENGINE_DOWN", Code::kUnavailable, Detail::kRetryInfo,
     "The model's engine failed before the call started; the engine or the server is being "
     "restarted: retry, or use another server."},
    {Reason::kDeadlineTooClose, "DEADLINE_TOO_CLOSE", Code::kDeadlineExceeded, Detail::kNone,
     "The answer is expected after the deadline, or the call would wait for more than three "
     "quarters "
     "of the time until then; nothing was decoded: set a later deadline, try another server once, "
     "or "
     "retry when this one is less busy."},
    {Reason::kDeadlineTooShort, "DEADLINE_TOO_SHORT", Code::kDeadlineExceeded, Detail::kNone,
     "An idle server would answer after the deadline as well; nothing was decoded: set a later "
     "deadline, or send less text. A retry does not help; it counts as an error of the client."},
    {Reason::kCancelled, "CANCELLED", Code::kCancelled, Detail::kNone,
     "The client cancelled the call or disconnected."},
    {Reason::kDeadlineExceeded, "DEADLINE_EXCEEDED", Code::kDeadlineExceeded, Detail::kNone,
     "The deadline passed before the answer was complete: that of the call or the server's own "
     "(300 seconds without a deadline, max-deadline); the message names it."},
    {Reason::kInternal, "INTERNAL", Code::kInternal, Detail::kNone,
     "The server failed; its log has the cause. Do not retry it automatically: a text that makes "
     "an "
     "engine stall or crash would do the same to the next server."},
};

template <typename Detail>
std::string TypeUrl() {
  return absl::StrCat(kTypePrefix, Detail::descriptor()->full_name());
}

template <typename Detail>
void Attach(const Detail& detail, absl::Status& status) {
  status.SetPayload(TypeUrl<Detail>(), absl::Cord(detail.SerializeAsString()));
}

template <typename Detail>
bool Extract(const absl::Status& status, Detail& detail) {
  const absl::optional<absl::Cord> payload = status.GetPayload(TypeUrl<Detail>());
  return payload.has_value() && detail.ParseFromString(std::string(*payload));
}

void AttachInfo(absl::string_view reason, ErrorMetadata metadata, absl::Status& status) {
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(reason));
  info.set_domain(kDomain);
  for (auto& [key, value] : metadata) (*info.mutable_metadata())[key] = std::move(value);
  Attach(info, status);
}

absl::Status MakeError(Reason reason, absl::string_view message, ErrorMetadata metadata) {
  const ErrorCondition& condition = GetCondition(reason);
  absl::Status status(condition.code, message);
  AttachInfo(condition.name, std::move(metadata), status);
  return status;
}

void AttachRetry(absl::Duration delay, absl::Status& status) {
  google::rpc::RetryInfo retry;
  const int64_t milliseconds = absl::ToInt64Milliseconds(delay);
  retry.mutable_retry_delay()->set_seconds(milliseconds / 1000);
  retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(milliseconds % 1000) * 1'000'000);
  Attach(retry, status);
}

absl::Status CopyPayloads(const absl::Status& from, absl::Status to) {
  from.ForEachPayload([&](absl::string_view type_url, const absl::Cord& payload) {
    to.SetPayload(type_url, payload);
  });
  return to;
}

}  // namespace

std::span<const ErrorCondition> ErrorTable() { return kTable; }

const ErrorCondition& GetCondition(Reason reason) { return kTable[static_cast<int>(reason)]; }

absl::Status BadField(absl::string_view field, Reason reason, absl::string_view message,
                      ErrorMetadata metadata) {
  metadata.emplace_back("field", std::string(field));
  absl::Status status = MakeError(reason, absl::StrCat(field, ": ", message), std::move(metadata));
  google::rpc::BadRequest bad_request;
  google::rpc::BadRequest::FieldViolation& violation = *bad_request.add_field_violations();
  violation.set_field(std::string(field));
  violation.set_description(std::string(message));
  violation.set_reason(std::string(GetCondition(reason).name));
  Attach(bad_request, status);
  return status;
}

absl::Status Unauthenticated(absl::string_view message) {
  return MakeError(Reason::kUnauthenticated, message, {});
}

absl::Status PermissionDenied(absl::string_view message) {
  return MakeError(Reason::kPermissionDenied, message, {});
}

absl::Status NoSuchModel(absl::string_view name, absl::string_view message) {
  absl::Status status = MakeError(Reason::kModelNotFound, message, {{"name", std::string(name)}});
  google::rpc::ResourceInfo resource;
  resource.set_resource_type("linnet.v1.Model");
  resource.set_resource_name(std::string(name));
  resource.set_description(std::string(message));
  Attach(resource, status);
  return status;
}

absl::Status RegistryUnreadable(const absl::Status& why) {
  return MakeError(Reason::kRegistryUnreadable, why.message(), {});
}

absl::Status ModelNotLoaded(absl::string_view folder, const absl::Status& why) {
  return MakeError(
      Reason::kModelNotLoaded, why.message(),
      {{"folder", std::string(folder)}, {"cause", absl::StatusCodeToString(why.code())}});
}

absl::Status Busy(Reason reason, absl::string_view message, absl::Duration retry_delay,
                  ErrorMetadata metadata, absl::string_view subject) {
  absl::Status status = MakeError(reason, message, std::move(metadata));
  AttachRetry(retry_delay, status);
  google::rpc::QuotaFailure quota;
  google::rpc::QuotaFailure::Violation& violation = *quota.add_violations();
  violation.set_subject(std::string(subject));
  violation.set_description(std::string(message));
  Attach(quota, status);
  return status;
}

absl::Status WaitedTooLong(absl::Duration waited, absl::Duration retry_delay) {
  const std::string time = absl::FormatDuration(absl::Trunc(waited, absl::Milliseconds(1)));
  return Busy(Reason::kWaitedTooLong,
              absl::StrCat("the server is overloaded: the call waited for ", time,
                           " and had not started, retry later"),
              retry_delay, {{"waited", time}});
}

absl::Status OutOfMemory(absl::Duration retry_delay) {
  return Busy(Reason::kOutOfMemory,
              "the engine has too little memory for this call now, retry later", retry_delay, {},
              "engine");
}

absl::Status ErrorOfException() {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return Busy(Reason::kOutOfMemory,
                  "the server has too little memory for this call now, retry later",
                  absl::Seconds(1), {}, "server");
    } catch (const std::exception& error) {
      return absl::InternalError(error.what());
    } catch (...) {
      return absl::InternalError("an exception of an unknown type");
    }
  } catch (...) {  // no memory for the message
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

absl::Status DeadlineTooClose(absl::string_view message, ErrorMetadata metadata) {
  return MakeError(Reason::kDeadlineTooClose, message, std::move(metadata));
}

absl::Status DeadlineTooShort(absl::string_view message, ErrorMetadata metadata) {
  return MakeError(Reason::kDeadlineTooShort, message, std::move(metadata));
}

absl::Status ShuttingDown() {
  absl::Status status = MakeError(Reason::kShuttingDown,
                                  "the server is shutting down: retry, or use another server", {});
  AttachRetry(absl::Seconds(1), status);
  return status;
}

absl::Status EngineDown(absl::Duration retry_delay) {
  absl::Status status = MakeError(
      Reason::kEngineDown,
      "the model's engine failed and is being restarted: retry, or use another server", {});
  AttachRetry(retry_delay, status);
  return status;
}

absl::Status WithErrorInfo(absl::Status status) {
  google::rpc::ErrorInfo info;
  if (status.ok() || Extract(status, info)) return status;
  AttachInfo(absl::StatusCodeToString(status.code()), {}, status);
  return status;
}

absl::Status AtField(absl::string_view field, Reason reason, absl::Status status) {
  if (status.code() != absl::StatusCode::kInvalidArgument) return status;
  return BadField(field, reason, status.message());
}

absl::Status Renamed(absl::string_view from, absl::string_view to, const absl::Status& status) {
  google::rpc::BadRequest bad_request;
  if (!Extract(status, bad_request) || bad_request.field_violations_size() != 1) return status;
  std::string& field = *bad_request.mutable_field_violations(0)->mutable_field();
  if (field == kWholeRequest) return status;
  absl::string_view rest = field;
  absl::string_view message = status.message();
  if (!absl::ConsumePrefix(&message, field) || !absl::ConsumePrefix(&rest, from)) return status;
  field = absl::StrCat(to, rest);
  absl::Status renamed =
      CopyPayloads(status, absl::Status(status.code(), absl::StrCat(field, message)));
  google::rpc::ErrorInfo info;
  Extract(status, info);
  (*info.mutable_metadata())["field"] = field;
  Attach(info, renamed);
  Attach(bad_request, renamed);
  return renamed;
}

absl::Status WithMore(absl::string_view more, const absl::Status& status) {
  absl::Status longer =
      CopyPayloads(status, absl::Status(status.code(), absl::StrCat(status.message(), more)));
  google::rpc::BadRequest bad_request;
  if (Extract(status, bad_request) && bad_request.field_violations_size() == 1) {
    absl::StrAppend(bad_request.mutable_field_violations(0)->mutable_description(), more);
    Attach(bad_request, longer);
  }
  return longer;
}

absl::Status WithRequestId(absl::string_view request_id, absl::Status status) {
  if (status.ok()) return status;
  google::rpc::RequestInfo info;
  info.set_request_id(std::string(request_id));
  Attach(info, status);
  return status;
}

google::rpc::Status ToProto(const absl::Status& status) {
  google::rpc::Status proto;
  proto.set_code(static_cast<int>(status.code()));
  proto.set_message(status.code() == absl::StatusCode::kInternal
                        ? "the server failed to answer this call; its log has the cause"
                        : std::string(status.message()));
  status.ForEachPayload([&](absl::string_view type_url, const absl::Cord& payload) {
    google::protobuf::Any& detail = *proto.add_details();
    detail.set_type_url(std::string(type_url));
    detail.set_value(std::string(payload));
  });
  // Payloads come in the order of a hash map: sort them, so that clients and tests see a fixed one.
  std::sort(proto.mutable_details()->begin(), proto.mutable_details()->end(),
            [](const auto& a, const auto& b) { return a.type_url() < b.type_url(); });
  return proto;
}

absl::Duration RetryDelay(const absl::Status& status) {
  google::rpc::RetryInfo retry;
  if (!Extract(status, retry)) return absl::InfiniteDuration();
  return absl::Seconds(retry.retry_delay().seconds()) +
         absl::Nanoseconds(retry.retry_delay().nanos());
}

std::string ErrorReason(const absl::Status& status) {
  google::rpc::ErrorInfo info;
  Extract(status, info);
  return info.reason();
}

}  // namespace linnet::server
