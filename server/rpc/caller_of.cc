#include "server/rpc/caller_of.h"

#include <algorithm>
#include <string>

#include "absl/strings/string_view.h"

namespace linnet::server {
namespace {

absl::string_view Header(const grpc::CallbackServerContext& context, const char* name) {
  const auto found = context.client_metadata().find(name);
  if (found == context.client_metadata().end()) return "";
  return {found->second.data(), found->second.size()};
}

bool IsName(absl::string_view name) {
  return !name.empty() && name.size() <= 64 &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 127; });
}

}  // namespace

Caller CallerOf(const grpc::CallbackServerContext& context) {
  Caller caller;
  const absl::string_view priority = Header(context, "x-priority");
  if (priority == "batch") caller.priority = Priority::kBatch;
  if (priority == "interactive") caller.priority = Priority::kInteractive;

  const auto subjects = context.auth_context()->GetPeerIdentity();
  if (!subjects.empty()) {
    caller.client = "subject:" + std::string(subjects[0].data(), subjects[0].size());
  } else if (const absl::string_view id = Header(context, "x-client-id"); IsName(id)) {
    caller.client = "id:" + std::string(id);
  } else {
    const std::string peer = context.peer();  // "ipv4:127.0.0.1:4711"
    caller.client = peer.substr(0, peer.rfind(':'));
  }
  return caller;
}

}  // namespace linnet::server
