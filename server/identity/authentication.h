#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/caller.h"
#include "server/identity/token_table.h"

namespace linnet::server {

// The headers of one call: the values of the header of that name, in the order in which they were
// sent.
using Headers = absl::FunctionRef<std::vector<absl::string_view>(absl::string_view name)>;

// What a token must allow for a method.
enum class Right { kNone, kAnyToken, kInference, kAdmin };
// `path` is that of HTTP/2: "/linnet.v1.TextService/Translate".
Right RightFor(absl::string_view path);

// What the token of this call allows: `authorization: Bearer TOKEN`, once. UNAUTHENTICATED without
// a token that is in the table, PERMISSION_DENIED if it lacks the right. No message holds the
// token.
absl::StatusOr<Grant> Authenticate(Headers headers, Right right, const TokenTable& tokens);

// The other end of a connection, as far as it is known without any call.
struct Peer {
  absl::string_view address = {};  // as gRPC writes it: "ipv4:127.0.0.1:4711"
  // Of a client certificate that TLS has verified, or empty.
  absl::string_view certificate_subject = {};
};

// On whose behalf a call is made, from what this call brings and nothing else: two calls of one
// connection may have two callers. With `tokens` (null where the server asks for none) the caller
// is the name of the call's token; otherwise it is the certificate's subject, else the address
// without its port, of which `x-client-id` names one caller. `x-priority` and `x-request-id` are
// read too.
//
// Thread-safe: it reads its arguments and writes `caller`. On an error, which is one of
// Authenticate's or INVALID_ARGUMENT for a header that says something that it cannot say, `caller`
// holds what is known nevertheless, for the log.
absl::Status ResolveCaller(Headers headers, const Peer& peer, Right right, const TokenTable* tokens,
                           Caller& caller);

// Gives the call the priority that it asks for. PERMISSION_DENIED above what its caller may have;
// `source` is the header or field that asks.
absl::Status SetPriority(absl::string_view source, Priority priority, Caller& caller);

}  // namespace linnet::server
