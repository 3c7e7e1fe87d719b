#include "client/library/grpc_status.h"

#include "absl/strings/cord.h"
#include "google/protobuf/any.pb.h"

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

bool HasDetails(const absl::Status& status) {
  bool any = false;
  status.ForEachPayload([&any](absl::string_view, const absl::Cord&) { any = true; });
  return any;
}

}  // namespace linnet::client
