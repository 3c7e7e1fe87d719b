#include "client/library/channel.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/library/proxy.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "linnet/v1/text_service.grpc.pb.h"

namespace linnet::client {
namespace {

using v1::TextService;

// More than a server takes by default.
constexpr int kMaxRequestBytes = (4 << 20) + (64 << 10);

// Used for lists of addresses only: behind a load balancer, the health of the one server that the
// balancer chose for the health watch would stand for all.
std::string Balancing() {
  return absl::StrFormat(
      R"("loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": "%s"})",
      TextService::service_full_name());
}

// gRPC writes a list of addresses as ipv4:IP:PORT,IP:PORT.
std::string ChannelTarget(const std::string& server) {
  if (!absl::StrContains(server, ',') || absl::StartsWith(server, "ipv")) return server;
  return absl::StrCat(absl::StartsWith(server, "[") ? "ipv6:" : "ipv4:", server);
}

std::shared_ptr<grpc::ChannelCredentials> Credentials(const TlsOptions& tls) {
  if (!UsesTls(tls)) return grpc::InsecureChannelCredentials();
  namespace experimental = grpc::experimental;
  constexpr unsigned kRefreshSeconds = 5;
  experimental::TlsChannelCredentialsOptions options;
  if (!tls.ca_file.empty() || !tls.certificate_file.empty()) {
    options.set_certificate_provider(std::make_shared<experimental::FileWatcherCertificateProvider>(
        tls.key_file, tls.certificate_file, tls.ca_file, kRefreshSeconds));
  }
  if (!tls.ca_file.empty()) options.watch_root_certs();
  if (!tls.certificate_file.empty()) options.watch_identity_key_cert_pairs();
  return experimental::TlsCredentials(options);
}

std::shared_ptr<grpc::Channel> Make(const ClientOptions& options, const std::string& config) {
  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON("{" + config + "}");
  // A service config in a DNS record must not replace ours.
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetUserAgentPrefix("linnet/" + Version());
  arguments.SetMaxReceiveMessageSize(options.max_reply_bytes);
  // By default gRPC sends no request of more than 256 KiB again that a server has not read.
  arguments.SetInt(GRPC_ARG_PER_RPC_RETRY_BUFFER_SIZE, kMaxRequestBytes);
  // By default gRPC waits 1 s before it reconnects, so the first retries would all fail with the
  // first refusal, and later up to 2 min, far longer than a server needs to start.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                   absl::ToInt64Milliseconds(options.retry.initial_backoff));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
                   absl::ToInt64Milliseconds(options.retry.max_backoff));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, absl::ToInt64Milliseconds(options.keepalive));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, absl::ToInt64Milliseconds(options.keepalive));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA,
                   0);  // unlimited: by default gRPC stops after two
  // Otherwise gRPC lets clients with equal options share a connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Otherwise gRPC would use a proxy for this machine and for hosts that only FindProxy excludes.
  if (!FindProxy(options.server)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (!options.tls.server_name.empty()) {
    arguments.SetSslTargetNameOverride(options.tls.server_name);
  }
  return grpc::CreateCustomChannel(ChannelTarget(options.server), Credentials(options.tls),
                                   arguments);
}

}  // namespace

bool UsesTls(const TlsOptions& tls) {
  return tls.enabled || !tls.ca_file.empty() || !tls.certificate_file.empty() ||
         !tls.server_name.empty();
}

absl::Status CheckTokenIsPrivate(const ClientOptions& options) {
  if (UsesTls(options.tls) || options.token_file.empty() || IsThisMachine(options.server))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a token would go to ", options.server, " in plain text: encrypt the connection with TLS"));
}

std::shared_ptr<grpc::Channel> MakeChannel(const ClientOptions& options) {
  return Make(options, IsBalanced(options) ? Balancing() : "");
}

std::shared_ptr<grpc::Channel> MakeHealthChannel(const ClientOptions& options) {
  // By default gRPC tries one address after the other, and waits for each that does not answer.
  return Make(options,
              IsBalanced(options) ? R"("loadBalancingConfig": [{"round_robin": {}}])" : "");
}

}  // namespace linnet::client
