#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/caller.h"
#include "server/identity/token_table.h"

namespace linnet::server {

// The headers of one call: returns the values of a header in the order in which they were sent.
using Headers = absl::FunctionRef<std::vector<absl::string_view>(absl::string_view name)>;

// The right that a method requires of a token.
enum class Right { kNone, kAnyToken, kInference, kAdmin };
// `path` is the HTTP/2 path: "/linnet.v1.TextService/Translate".
Right RequiredRight(absl::string_view path);

// Checks the token of a call (`authorization: Bearer TOKEN`, sent once) and returns its grant.
// UNAUTHENTICATED if the table does not have the token, PERMISSION_DENIED if it lacks the right. No
// message contains the token.
absl::StatusOr<Grant> Authenticate(Headers headers, Right right, const TokenTable& tokens);

// The peer of a connection, without anything that a call says.
struct Peer {
  absl::string_view address = {};  // as gRPC writes it: "ipv4:127.0.0.1:4711"
  // Subject of a client certificate that TLS has verified, or empty.
  absl::string_view certificate_subject = {};
};

// Identifies the client of a call from this call alone: two calls of one connection may have
// different callers. With `tokens` (null if the server requires none) the caller is the name of the
// call's token. Otherwise it is the certificate's subject, or else the peer's network
// (NetworkName), which `x-client-id` divides further. `x-priority` and `x-request-id` are read too.
//
// Thread-safe: it reads its arguments and writes `caller`. It fails with the errors of
// Authenticate, or INVALID_ARGUMENT for a header with a bad value. On an error `caller` holds what
// is known so far, for the log.
absl::Status ResolveCaller(Headers headers, const Peer& peer, Right right, const TokenTable* tokens,
                           Caller& caller);

// Sets the priority that a request has in its `field`, else that of the header x-priority, which
// ResolveCaller has read. PERMISSION_DENIED above the caller's maximum.
absl::Status ApplyPriority(absl::string_view field, std::optional<Priority> priority,
                           Caller& caller);

}  // namespace linnet::server
