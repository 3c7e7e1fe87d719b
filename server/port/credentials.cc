#include "server/port/credentials.h"

#include <grpcpp/security/tls_credentials_options.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/loopback.h"
#include "proto/status_macros.h"
#include "server/identity/authentication.h"
#include "server/port/call_headers.h"
#include "server/port/status.h"
#include "server/port/tls_files.h"

namespace linnet::server {
namespace {

constexpr unsigned kRefreshSeconds = 5;

}  // namespace

grpc::Status Authenticator::Process(const InputMetadata& metadata, grpc::AuthContext* /*context*/,
                                    OutputMetadata* /*consumed*/, OutputMetadata* /*response*/) {
  auto headers = [&](absl::string_view name) { return HeaderValues(metadata, name); };
  const std::vector<absl::string_view> path = headers(":path");
  const Right right = path.empty() ? Right::kInference : RequiredRight(path.front());
  if (right == Right::kNone) return grpc::Status::OK;
  const absl::Status status = Authenticate(headers, right, *tokens_->table()).status();
  if (status.ok()) return grpc::Status::OK;
  metrics_.Denied(status.code());
  return ToGrpcStatus(status);
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials(
    const SecurityOptions& security, const std::string& address,
    const std::shared_ptr<Authenticator>& authenticator) {
  std::shared_ptr<grpc::ServerCredentials> credentials;
  if (!security.tls_certificate.empty()) {
    RETURN_IF_ERROR(CheckTlsFiles(security));
    const bool mutual = !security.tls_client_ca.empty();
    auto provider = mutual ? std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
                                 security.tls_key, security.tls_certificate, security.tls_client_ca,
                                 kRefreshSeconds)
                           : std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
                                 security.tls_key, security.tls_certificate, kRefreshSeconds);
    grpc::experimental::TlsServerCredentialsOptions options(provider);
    options.watch_identity_key_cert_pairs();
    if (mutual) {
      options.watch_root_certs();
      options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    }
    credentials = grpc::experimental::TlsServerCredentials(options);
  } else if (authenticator != nullptr) {
    if (!IsLoopback(address) && !security.tls_terminated_upstream) {
      return absl::InvalidArgumentError(
          absl::StrCat("tokens would go over the network in plain text: give --tls-cert and "
                       "--tls-key, or listen on a loopback address, not on ",
                       address,
                       "; if a mesh or proxy terminates TLS before this server, set "
                       "--tls-terminated-upstream true"));
    }
    // gRPC supports no authenticator with plain text on any address. The services of this server
    // resolve the caller of each call themselves (CallRecord), but gRPC's reflection does not.
    if (security.tls_terminated_upstream) return grpc::InsecureServerCredentials();
    // Plain text too, but it supports an authenticator.
    credentials = grpc::experimental::LocalServerCredentials(LOCAL_TCP);
  } else {
    return grpc::InsecureServerCredentials();
  }
  if (authenticator != nullptr) credentials->SetAuthMetadataProcessor(authenticator);
  return credentials;
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeAdminCredentials(
    const SecurityOptions& security, const std::string& address,
    const std::shared_ptr<Authenticator>& authenticator) {
  if (address.empty()) return nullptr;
  if (authenticator == nullptr && !IsLoopback(address)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "any machine could administer this server: give --tokens, or an --admin-listen "
        "with a loopback address, not ",
        address));
  }
  return MakeCredentials(security, address, authenticator);
}

}  // namespace linnet::server
