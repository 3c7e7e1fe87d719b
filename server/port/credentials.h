#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/config/options.h"
#include "server/identity/token_file.h"
#include "server/metrics/metrics.h"

namespace linnet::server {

// Rejects a call without a token that has the right for its method, before its request is read and
// before any of our code runs. It only rejects: a connection may carry calls of many callers, so
// nothing is written to its AuthContext, and the caller is resolved for each call (ResolveCaller).
// Thread-safe.
class Authenticator final : public grpc::AuthMetadataProcessor {
 public:
  // `metrics` must outlive it.
  Authenticator(std::shared_ptr<const TokenFile> tokens, Metrics& metrics)
      : tokens_(std::move(tokens)), metrics_(metrics) {}

  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context,
                       OutputMetadata* consumed, OutputMetadata* response) override;

 private:
  const std::shared_ptr<const TokenFile> tokens_;
  Metrics& metrics_;
};

// Makes the credentials for `address`: TLS if certificates are given, which are reloaded when their
// files change. Tokens require TLS or a loopback address.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials(
    const SecurityOptions& security, const std::string& address,
    const std::shared_ptr<Authenticator>& authenticator);

// The same for the admin address, which may be empty: without tokens it must be a loopback address.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeAdminCredentials(
    const SecurityOptions& security, const std::string& address,
    const std::shared_ptr<Authenticator>& authenticator);

}  // namespace linnet::server
