#include "client/library/channel.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "grpcpp/grpcpp.h"
#include "linnet/v1/text_service.grpc.pb.h"

namespace linnet::client {
namespace {

using v1::TextService;

absl::Status CheckServer(const std::string& server) {
  for (absl::string_view scheme : {"unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:", "xds:"}) {
    if (absl::StartsWith(server, scheme)) return absl::OkStatus();  // gRPC checks the rest
  }
  const size_t colon = server.rfind(':');
  int port = 0;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(server.substr(colon + 1), &port) || port < 1 || port > 65535 ||
      (server.find(':') != colon && server[0] != '[')) {
    return absl::InvalidArgumentError(absl::StrCat(
        "server \"", server,
        "\" is not HOST:PORT with a port of 1 to 65535, as in 127.0.0.1:50051 or [::1]:50051"));
  }
  return absl::OkStatus();
}

// The retries of TextService's calls, done by gRPC: it knows which calls did not reach the server
// and obeys the server's wish of when to come back (grpc-retry-pushback-ms). The throttle stops
// retries while most calls fail. https://github.com/grpc/proposal/blob/master/A6-client-retries.md
std::string ServiceConfig(const RetryOptions& retry) {
  if (retry.max_attempts == 1) return "{}";
  return absl::StrFormat(R"({
    "methodConfig": [{
      "name": [{"service": "%s"}],
      "retryPolicy": {
        "maxAttempts": %d,
        "initialBackoff": "%.3fs",
        "maxBackoff": "%.3fs",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]
      }
    }],
    "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}
  })",
                         TextService::service_full_name(), retry.max_attempts,
                         absl::ToDoubleSeconds(retry.initial_backoff),
                         absl::ToDoubleSeconds(retry.max_backoff));
}

bool IsThisMachine(const std::string& server) {
  return absl::StartsWith(server, "localhost:") || absl::StartsWith(server, "127.") ||
         absl::StartsWith(server, "[::1]:");
}

}  // namespace

absl::Status CheckOptions(const ClientOptions& options) {
  if (absl::Status status = CheckServer(options.server); !status.ok()) return status;
  if (options.timeout <= absl::ZeroDuration() || options.timeout > absl::Hours(24)) {
    return absl::InvalidArgumentError(absl::StrCat("timeout is ",
                                                   absl::FormatDuration(options.timeout),
                                                   ", it must be above 0 and at most 24h"));
  }
  if (options.wait < absl::ZeroDuration() || options.wait > absl::Hours(24)) {
    return absl::InvalidArgumentError(
        absl::StrCat("wait is ", absl::FormatDuration(options.wait), ", it must be from 0 to 24h"));
  }
  const RetryOptions& retry = options.retry;
  if (retry.max_attempts < 1 || retry.max_attempts > 5) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_attempts ", retry.max_attempts, " is not 1 to 5"));
  }
  if (retry.initial_backoff < absl::Milliseconds(1) || retry.max_backoff < retry.initial_backoff) {
    return absl::InvalidArgumentError(absl::StrCat(
        "back-off from ", absl::FormatDuration(retry.initial_backoff), " to ",
        absl::FormatDuration(retry.max_backoff), " does not go upwards from 1ms or more"));
  }
  if (options.max_reply_bytes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_reply_bytes ", options.max_reply_bytes, " is not at least 1"));
  }
  return absl::OkStatus();
}

std::shared_ptr<grpc::Channel> MakeChannel(const ClientOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(ServiceConfig(options.retry));
  arguments.SetUserAgentPrefix("linnet/" + Version());
  arguments.SetMaxReceiveMessageSize(options.max_reply_bytes);
  // gRPC waits 1 s before it connects again, so the first retries would all meet the first refusal;
  // and up to 2 min later on, far longer than a server needs to start.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                   absl::ToInt64Milliseconds(options.retry.initial_backoff));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
                   absl::ToInt64Milliseconds(options.retry.max_backoff));
  // Otherwise clients with equal options would share a connection behind our back.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Nobody means their http_proxy for a server on their own machine.
  if (IsThisMachine(options.server)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(options.server, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace linnet::client
