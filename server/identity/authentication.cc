#include "server/identity/authentication.h"

#include <algorithm>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/identity/peer_address.h"

namespace linnet::server {
namespace {

constexpr size_t kMaxClientId = 64;
constexpr size_t kMaxRequestId = 128;
constexpr size_t kMaxQuoted = 64;  // bytes of a value that an error quotes

absl::Status BadHeader(absl::string_view name, absl::string_view what) {
  return BadField(name, Reason::kBadHeader, what);
}

// Reads a header that may be sent at most once; empty without it.
absl::Status ReadOnce(Headers headers, absl::string_view name, absl::string_view& value) {
  const std::vector<absl::string_view> values = headers(name);
  if (values.size() > 1) {
    return BadHeader(name, absl::StrCat("is sent ", values.size(), " times: send it once"));
  }
  if (!values.empty()) value = values.front();
  return absl::OkStatus();
}

// Reads a name that clients choose: printable ASCII without spaces.
absl::Status ReadName(Headers headers, absl::string_view header, size_t max_bytes,
                      std::string& name) {
  absl::string_view value;
  RETURN_IF_ERROR(ReadOnce(headers, header, value));
  if (value.size() > max_bytes) {
    return BadHeader(header, absl::StrCat("has ", value.size(), " characters, at most ", max_bytes,
                                          " are allowed: shorten it or leave it out"));
  }
  if (!std::all_of(value.begin(), value.end(), [](char c) { return c > ' ' && c < 127; })) {
    return BadHeader(header, absl::StrCat("\"", absl::CHexEscape(value.substr(0, kMaxQuoted)),
                                          "\" has spaces or characters that are not ASCII: use "
                                          "letters, digits and punctuation, or leave it out"));
  }
  name = std::string(value);
  return absl::OkStatus();
}

absl::Status ReadPriority(Headers headers, Caller& caller) {
  absl::string_view value;
  RETURN_IF_ERROR(ReadOnce(headers, "x-priority", value));
  if (value.empty()) return absl::OkStatus();
  Priority priority = Priority::kNormal;
  if (!ParsePriority(value, priority)) {
    return BadHeader("x-priority", absl::StrCat("\"", absl::CHexEscape(value.substr(0, kMaxQuoted)),
                                                "\" is not a priority: send batch, normal or "
                                                "interactive, or leave it out"));
  }
  if (priority > caller.max_priority) {
    caller.denied_priority = priority;
  } else {
    caller.priority = priority;
  }
  return absl::OkStatus();
}

absl::Status SetPriority(absl::string_view source, Priority priority, Caller& caller) {
  if (priority > caller.max_priority) {
    return PermissionDenied(absl::StrCat(
        source, ": ", PriorityName(priority), " is above ", PriorityName(caller.max_priority),
        ", the highest priority that the token of this call may ask for: ask for that or less"));
  }
  caller.priority = priority;
  return absl::OkStatus();
}

void SetSubject(absl::string_view subject, Caller& caller) {
  caller.client = absl::StrCat(kSubjectPrefix, subject);
  caller.address.clear();
}

// Sets who calls.
absl::Status ReadClient(Headers headers, const Peer& peer, Right right, const TokenTable* tokens,
                        Caller& caller) {
  caller.client = NetworkName(peer.address);
  caller.address = std::string(WithoutPort(peer.address));
  if (tokens != nullptr) {
    ASSIGN_OR_RETURN(Grant grant, Authenticate(headers, right, *tokens));
    SetSubject(grant.name, caller);
    caller.max_priority = grant.max_priority;
    caller.priority = std::min(Priority::kNormal, grant.max_priority);
    return absl::OkStatus();
  }
  if (!peer.certificate_subject.empty()) {
    SetSubject(peer.certificate_subject, caller);
    return absl::OkStatus();
  }
  return ReadName(headers, "x-client-id", kMaxClientId, caller.id);
}

}  // namespace

Right RequiredRight(absl::string_view path) {
  if (absl::StartsWith(path, "/grpc.health.v1.Health/")) return Right::kNone;
  if (absl::StartsWith(path, "/grpc.reflection.")) return Right::kAnyToken;
  if (absl::StartsWith(path, "/linnet.v1.AdminService/")) return Right::kAdmin;
  return Right::kInference;
}

absl::StatusOr<Grant> Authenticate(Headers headers, Right right, const TokenTable& tokens) {
  const std::vector<absl::string_view> values = headers("authorization");
  if (values.size() > 1) {
    return Unauthenticated(
        absl::StrCat("the call has ", values.size(), " headers \"authorization\": send one"));
  }
  absl::string_view token = values.empty() ? absl::string_view() : values.front();
  // The scheme has any case (RFC 9110, section 11.1).
  constexpr absl::string_view kScheme = "bearer ";
  if (!absl::StartsWithIgnoreCase(token, kScheme)) {
    return Unauthenticated(
        "the call has no token: send the header \"authorization: Bearer TOKEN\"");
  }
  const Grant* grant = tokens.Find(token.substr(kScheme.size()));
  if (grant == nullptr) return Unauthenticated("the token is not known to this server");
  const bool allowed = right == Right::kAdmin       ? grant->admin
                       : right == Right::kInference ? grant->inference
                                                    : true;
  if (!allowed) {
    return PermissionDenied(
        absl::StrCat("the token of \"", grant->name, "\" does not have the right \"",
                     right == Right::kAdmin ? "admin" : "inference", "\": use one that has it"));
  }
  return *grant;
}

absl::Status ApplyPriority(absl::string_view field, std::optional<Priority> priority,
                           Caller& caller) {
  if (priority.has_value()) return SetPriority(field, *priority, caller);
  if (!caller.denied_priority.has_value()) return absl::OkStatus();
  return SetPriority("x-priority", *caller.denied_priority, caller);
}

absl::Status ResolveCaller(Headers headers, const Peer& peer, Right right, const TokenTable* tokens,
                           Caller& caller) {
  RETURN_IF_ERROR(ReadClient(headers, peer, right, tokens, caller));
  RETURN_IF_ERROR(ReadName(headers, "x-request-id", kMaxRequestId, caller.request_id));
  return ReadPriority(headers, caller);
}

}  // namespace linnet::server
