// DetailsOf and ErrorText, declared in client.h.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/library/client.h"
#include "google/rpc/error_details.pb.h"

namespace linnet::client {
namespace {

template <typename Detail>
std::optional<Detail> Find(const absl::Status& status) {
  const auto payload =
      status.GetPayload("type.googleapis.com/" + Detail::descriptor()->full_name());
  Detail detail;
  if (!payload.has_value() || !detail.ParseFromString(std::string(*payload))) return std::nullopt;
  return detail;
}

absl::Duration RetryDelay(const google::rpc::RetryInfo& retry) {
  return absl::Seconds(retry.retry_delay().seconds()) +
         absl::Nanoseconds(retry.retry_delay().nanos());
}

}  // namespace

ErrorDetails DetailsOf(const absl::Status& status) {
  ErrorDetails details;
  if (const auto info = Find<google::rpc::ErrorInfo>(status)) {
    details.reason = info->reason();
    details.metadata.insert(info->metadata().begin(), info->metadata().end());
  }
  if (const auto bad = Find<google::rpc::BadRequest>(status); bad && bad->field_violations_size()) {
    details.field = bad->field_violations(0).field();
  }
  if (const auto retry = Find<google::rpc::RetryInfo>(status))
    details.retry_delay = RetryDelay(*retry);
  if (const auto request = Find<google::rpc::RequestInfo>(status)) {
    details.request_id = request->request_id();
  }
  return details;
}

std::string ErrorText(const absl::Status& status) {
  std::string text = absl::StrCat(absl::StatusCodeToString(status.code()), ": ", status.message());
  std::set<std::string> named;  // fields and resources that the text already names
  if (const auto bad = Find<google::rpc::BadRequest>(status)) {
    for (const auto& violation : bad->field_violations()) {
      named.insert(violation.field());
      // The message often repeats the only violation.
      if (status.message() == absl::StrCat(violation.field(), ": ", violation.description()))
        continue;
      absl::StrAppend(&text, "\n  field ", violation.field());
      if (violation.description() != status.message()) {
        absl::StrAppend(&text, ": ", violation.description());
      }
    }
  }
  if (const auto resource = Find<google::rpc::ResourceInfo>(status)) {
    named.insert(resource->resource_name());
    if (resource->description() != status.message()) {
      absl::StrAppend(&text, "\n  ", resource->resource_type(), " \"", resource->resource_name(),
                      "\"");
      if (!resource->description().empty()) absl::StrAppend(&text, ": ", resource->description());
    }
  }
  if (const auto retry = Find<google::rpc::RetryInfo>(status)) {
    absl::StrAppendFormat(&text, "\n  retry after %g s", absl::ToDoubleSeconds(RetryDelay(*retry)));
  }
  if (const auto info = Find<google::rpc::ErrorInfo>(status)) {
    const std::map<std::string, std::string> sorted(info->metadata().begin(),
                                                    info->metadata().end());
    std::vector<std::string> parts = {info->reason()};
    for (const auto& [key, value] : sorted) {
      if (!named.contains(value)) parts.push_back(absl::StrCat(key, "=", value));
    }
    absl::StrAppend(&text, "\n  reason ", absl::StrJoin(parts, " "));
  }
  if (const auto request = Find<google::rpc::RequestInfo>(status)) {
    absl::StrAppend(&text, "\n  request ", request->request_id());
  }
  return text;
}

}  // namespace linnet::client
