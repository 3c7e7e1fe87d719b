#include "client/library/grpc_status.h"

#include "absl/strings/cord.h"
#include "google/protobuf/any.pb.h"
#include "google/rpc/status.pb.h"

namespace linnet::client {

absl::Status FromGrpc(const grpc::Status& status) {
  // gRPC's codes and abseil's are the same numbers.
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status details;
  if (details.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& detail : details.details()) {
      result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
    }
  }
  return result;
}

bool HasDetails(const absl::Status& status) {
  bool any = false;
  status.ForEachPayload([&any](absl::string_view, const absl::Cord&) { any = true; });
  return any;
}

}  // namespace linnet::client
