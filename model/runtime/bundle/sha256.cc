#include "model/runtime/bundle/sha256.h"

#include <openssl/evp.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/read_file.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

std::string Hex(const unsigned char* digest, unsigned int size) {
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) {
    absl::StrAppend(&hex, absl::Hex(digest[i], absl::kZeroPad2));
  }
  return hex;
}

}  // namespace

absl::StatusOr<std::string> Sha256OfFile(const std::filesystem::path& file) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  if (context == nullptr || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) {
    return absl::InternalError("libcrypto offers no sha256");
  }
  absl::StatusOr<RegularFile> regular = RegularFile::Open(file);
  if (!regular.ok()) return absl::FailedPreconditionError(regular.status().message());
  std::vector<char> buffer(1 << 20);
  for (;;) {
    ASSIGN_OR_RETURN(const size_t count, regular->Read(buffer.data(), buffer.size()));
    if (count == 0) break;
    if (EVP_DigestUpdate(context.get(), buffer.data(), count) != 1) {
      return absl::InternalError("libcrypto failed in sha256");
    }
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (EVP_DigestFinal_ex(context.get(), digest, &size) != 1) {
    return absl::InternalError("libcrypto failed in sha256");
  }
  return Hex(digest, size);
}

absl::StatusOr<std::string> Sha256OfBytes(absl::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr) != 1) {
    return absl::InternalError("libcrypto failed in sha256");
  }
  return Hex(digest, size);
}

}  // namespace linnet::model
