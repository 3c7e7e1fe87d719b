#pragma once

#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "server/mutex.h"
#include "server/options.h"
#include "server/token_table.h"

namespace linnet::server {

// Lets those calls in that bring a token with the right for their method: `authorization: Bearer
// TOKEN`. Health needs none. The name that the token stands for is the call's peer identity. Others
// end with UNAUTHENTICATED or PERMISSION_DENIED before any of our code sees them. Thread-safe.
class Authenticator final : public grpc::AuthMetadataProcessor {
 public:
  // Reads the file, and again in Refresh if it has changed; one that cannot be read changes nothing
  // then.
  static absl::StatusOr<std::shared_ptr<Authenticator>> Open(const std::string& path);
  void Refresh();

  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& headers, grpc::AuthContext* context,
                       OutputMetadata* consumed, OutputMetadata* response) override;

 private:
  explicit Authenticator(std::string path) : path_(std::move(path)) {}
  absl::Status Read();

  const std::string path_;
  Mutex mu_;
  std::filesystem::file_time_type changed_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const TokenTable> tokens_ ABSL_GUARDED_BY(mu_);
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
