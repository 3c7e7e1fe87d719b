#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct evp_pkey_st;  // OpenSSL's EVP_PKEY

namespace linnet::model {

// The public keys that may sign bundles: Ed25519 (RFC 8032). Immutable, so thread-safe.
class BundleKeys {
 public:
  // Reads a PEM file with one or more public keys (several during a change of signers). Returns
  // FailedPreconditionError if it cannot be read, has no key, or a key of another kind.
  static absl::StatusOr<BundleKeys> Read(const std::filesystem::path& file);

  // OK if `signature`, 64 bytes, is a signature of `bytes` by one of the keys, else
  // PermissionDeniedError.
  absl::Status Verify(absl::string_view bytes, absl::string_view signature) const;
  size_t size() const { return keys_.size(); }

 private:
  std::vector<std::shared_ptr<evp_pkey_st>> keys_;  // shared, so that copies are cheap
};

}  // namespace linnet::model
