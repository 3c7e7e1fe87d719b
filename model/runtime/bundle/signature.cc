#include "model/runtime/bundle/signature.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/read_file.h"

namespace linnet::model {
namespace {

constexpr size_t kSignatureBytes = 64;

const unsigned char* Bytes(absl::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

absl::StatusOr<BundleKeys> BundleKeys::Read(const std::filesystem::path& file) {
  auto wrong = [&](absl::string_view what) {
    return absl::FailedPreconditionError(
        absl::StrCat("the keys of bundles in ", file.string(), " ", what,
                     ": it must have public Ed25519 keys in PEM, as \"openssl pkey -pubout\" "
                     "writes them"));
  };
  const absl::StatusOr<std::string> pem = ReadFile(file, kMaxOperatorFileBytes);
  if (!pem.ok()) return absl::FailedPreconditionError(pem.status().message());
  const std::unique_ptr<BIO, decltype(&BIO_free)> source(
      BIO_new_mem_buf(pem->data(), static_cast<int>(pem->size())), &BIO_free);
  BundleKeys keys;
  char* name = nullptr;
  char* header = nullptr;
  unsigned char* data = nullptr;
  long size = 0;
  ERR_clear_error();
  while (PEM_read_bio(source.get(), &name, &header, &data, &size) == 1) {
    const unsigned char* next = data;
    std::shared_ptr<EVP_PKEY> key;
    if (std::string(name) == PEM_STRING_PUBLIC)
      key.reset(d2i_PUBKEY(nullptr, &next, size), &EVP_PKEY_free);
    for (void* part :
         {static_cast<void*>(name), static_cast<void*>(header), static_cast<void*>(data)})
      OPENSSL_free(part);
    if (key == nullptr || EVP_PKEY_id(key.get()) != EVP_PKEY_ED25519) {
      ERR_clear_error();
      return wrong("have one of another kind");
    }
    keys.keys_.push_back(std::move(key));
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!at_end) return wrong("have one that is damaged");
  if (keys.keys_.empty()) return wrong("are none");
  return keys;
}

absl::Status BundleKeys::Verify(absl::string_view bytes, absl::string_view signature) const {
  if (signature.size() != kSignatureBytes) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the signature has ", signature.size(), " bytes, one of Ed25519 has ", kSignatureBytes));
  }
  for (const auto& key : keys_) {
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                          &EVP_MD_CTX_free);
    if (context != nullptr &&
        EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
        EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(bytes),
                         bytes.size()) == 1)
      return absl::OkStatus();
    ERR_clear_error();
  }
  return absl::PermissionDeniedError(
      absl::StrCat("the signature is of none of the ", keys_.size(), " keys, or of other bytes"));
}

}  // namespace linnet::model
