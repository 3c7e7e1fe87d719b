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

// Rejects a call that brings no token with the right for its method, before its request is read and
// before any of our code sees it. It only rejects: a connection may carry calls of many callers, so
// nothing is written to its AuthContext, and who calls is resolved for each call (ResolveCaller).
// Thread-safe.
class Authenticator final : public grpc::AuthMetadataProcessor {
 public:
  // `metrics` outlives it.
  Authenticator(std::shared_ptr<const TokenFile> tokens, Metrics& metrics)
      : tokens_(std::move(tokens)), metrics_(metrics) {}

  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context,
                       OutputMetadata* consumed, OutputMetadata* response) override;

 private:
  const std::shared_ptr<const TokenFile> tokens_;
  Metrics& metrics_;
};

// Whether a HOST:PORT can be reached from this machine alone.
bool OnlyThisMachine(absl::string_view address);

// How connections to `address` are secured: by TLS with certificates that are read again when their
// files change, where there are any. Tokens need that, or an address that only this machine
// reaches.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials(
    const SecurityOptions& security, const std::string& address,
    const std::shared_ptr<Authenticator>& authenticator);

// The same for the address of administration, which may be empty: other machines reach it only
// where tokens say who may do that.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeAdminCredentials(
    const SecurityOptions& security, const std::string& address,
    const std::shared_ptr<Authenticator>& authenticator);

}  // namespace linnet::server
