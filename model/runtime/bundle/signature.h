#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct evp_pkey_st;  // OpenSSL's EVP_PKEY

namespace linnet::model {

// The public keys of those who may sign bundles: Ed25519 (RFC 8032). Immutable.
class BundleKeys {
 public:
  // A file in PEM with one public key or several after each other, so that signers can change.
  // FailedPreconditionError if it cannot be read, has none, or one of another kind.
  static absl::StatusOr<BundleKeys> Read(const std::filesystem::path& file);

  // OK if one of the keys made `signature`, 64 bytes, of `bytes`. PermissionDeniedError otherwise.
  absl::Status Verify(absl::string_view bytes, absl::string_view signature) const;
  size_t size() const { return keys_.size(); }

 private:
  std::vector<std::shared_ptr<evp_pkey_st>> keys_;  // shared, because copies are cheap then
};

}  // namespace linnet::model
