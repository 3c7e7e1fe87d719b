#include "server/errors.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "google/rpc/error_details.pb.h"

namespace linnet::server {
namespace {

constexpr char kTypePrefix[] = "type.googleapis.com/";

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

absl::Status MakeError(absl::StatusCode code, absl::string_view reason, absl::string_view message,
                       ErrorMetadata metadata) {
  absl::Status status(code, message);
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(reason));
  info.set_domain("linnet");
  for (auto& [key, value] : metadata) (*info.mutable_metadata())[key] = std::move(value);
  Attach(info, status);
  return status;
}

void AttachRetry(absl::Duration delay, absl::Status& status) {
  google::rpc::RetryInfo retry;
  const int64_t milliseconds = absl::ToInt64Milliseconds(delay);
  retry.mutable_retry_delay()->set_seconds(milliseconds / 1000);
  retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(milliseconds % 1000) * 1'000'000);
  Attach(retry, status);
}

}  // namespace

absl::Status BadField(absl::string_view field, absl::string_view reason, absl::string_view message,
                      ErrorMetadata metadata) {
  metadata.emplace_back("field", std::string(field));
  absl::Status status = MakeError(absl::StatusCode::kInvalidArgument, reason,
                                  absl::StrCat(field, ": ", message), std::move(metadata));
  google::rpc::BadRequest bad_request;
  google::rpc::BadRequest::FieldViolation& violation = *bad_request.add_field_violations();
  violation.set_field(std::string(field));
  violation.set_description(std::string(message));
  violation.set_reason(std::string(reason));
  Attach(bad_request, status);
  return status;
}

absl::Status NoSuchModel(absl::string_view name, absl::string_view message) {
  absl::Status status = MakeError(absl::StatusCode::kNotFound, "MODEL_NOT_FOUND", message,
                                  {{"name", std::string(name)}});
  google::rpc::ResourceInfo resource;
  resource.set_resource_type("linnet.v1.Model");
  resource.set_resource_name(std::string(name));
  resource.set_description(std::string(message));
  Attach(resource, status);
  return status;
}

absl::Status Busy(absl::string_view reason, absl::string_view message, absl::Duration retry_delay,
                  ErrorMetadata metadata) {
  absl::Status status =
      MakeError(absl::StatusCode::kResourceExhausted, reason, message, std::move(metadata));
  AttachRetry(retry_delay, status);
  return status;
}

absl::Status ShuttingDown() {
  absl::Status status = MakeError(absl::StatusCode::kUnavailable, "SHUTTING_DOWN",
                                  "the server is shutting down: retry, or ask another one", {});
  AttachRetry(absl::Milliseconds(100), status);
  return status;
}

absl::Status WithErrorInfo(absl::Status status) {
  google::rpc::ErrorInfo info;
  if (status.ok() || Extract(status, info)) return status;
  info.set_reason(absl::StatusCodeToString(status.code()));
  info.set_domain("linnet");
  Attach(info, status);
  return status;
}

absl::Status AtField(absl::string_view field, absl::string_view reason, absl::Status status) {
  if (status.code() != absl::StatusCode::kInvalidArgument) return status;
  return BadField(field, reason, status.message());
}

google::rpc::Status ToProto(const absl::Status& status) {
  google::rpc::Status proto;
  proto.set_code(static_cast<int>(status.code()));
  proto.set_message(std::string(status.message()));
  status.ForEachPayload([&](absl::string_view type_url, const absl::Cord& payload) {
    google::protobuf::Any& detail = *proto.add_details();
    detail.set_type_url(std::string(type_url));
    detail.set_value(std::string(payload));
  });
  // The order of payloads is that of a hash map; clients and tests like a fixed one.
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
