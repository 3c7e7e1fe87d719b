#include "client/library/grpc_status.h"

#include <cstdio>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/any.pb.h"
#include "google/rpc/error_details.pb.h"

namespace linnet::client {

absl::Status FromGrpc(const grpc::Status& status) {
  google::rpc::Status rpc;
  if (!rpc.ParseFromString(status.error_details())) rpc.Clear();
  rpc.set_code(status.error_code());
  rpc.set_message(status.error_message());
  return FromRpc(rpc);
}

absl::Status FromRpc(const google::rpc::Status& status) {
  // gRPC's codes and abseil's are the same numbers.
  absl::Status result(static_cast<absl::StatusCode>(status.code()), status.message());
  for (const google::protobuf::Any& detail : status.details()) {
    result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return result;
}

absl::Status NameTooLarge(const absl::Status& status, int64_t max_reply_bytes,
                          int64_t request_bytes) {
  const absl::string_view message = status.message();
  const size_t begin = message.find("message larger than max (");
  long long bytes = 0, max_bytes = 0;
  if (begin == absl::string_view::npos ||
      std::sscanf(std::string(message.substr(begin)).c_str(),
                  "message larger than max (%lld vs. %lld)", &bytes, &max_bytes) != 2) {
    return status;
  }
  constexpr int64_t kWrapper = 8;  // a streamed call sends its request inside a message
  const bool is_request = bytes >= request_bytes && bytes <= request_bytes + kWrapper;
  const bool reply = max_bytes == max_reply_bytes && !is_request;
  const std::string text =
      reply ? absl::StrCat("the answer has ", bytes, " bytes, this client takes at most ",
                           max_bytes, ": send less text at once, or raise max_reply_bytes")
            : absl::StrCat("the request has ", bytes, " bytes, the server takes at most ",
                           max_bytes, " in one message: send the rest in another");
  google::rpc::ErrorInfo info;
  info.set_domain("linnet");
  info.set_reason(reply ? "REPLY_TOO_LARGE" : "MESSAGE_TOO_LARGE");
  (*info.mutable_metadata())["bytes"] = absl::StrCat(bytes);
  (*info.mutable_metadata())["maxBytes"] = absl::StrCat(max_bytes);
  absl::Status named(reply ? absl::StatusCode::kOutOfRange : absl::StatusCode::kInvalidArgument,
                     text);
  named.SetPayload("type.googleapis.com/" + info.GetDescriptor()->full_name(),
                   absl::Cord(info.SerializeAsString()));
  return named;
}

bool HasDetails(const absl::Status& status) {
  bool any = false;
  status.ForEachPayload([&any](absl::string_view, const absl::Cord&) { any = true; });
  return any;
}

}  // namespace linnet::client
