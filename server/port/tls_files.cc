#include "server/port/tls_files.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/read_file.h"
#include "proto/status_macros.h"

namespace linnet::server {
namespace {

template <typename Thing, void (*kFree)(Thing*)>
struct Freed {
  void operator()(Thing* thing) const { kFree(thing); }
};
using Certificate = std::unique_ptr<X509, Freed<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY, EVP_PKEY_free>>;

using Memory = std::unique_ptr<BIO, decltype(&BIO_free)>;

// Reads the bytes of a file, which outlive it.
Memory OpenMemory(const std::string& bytes) {
  return {BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())), &BIO_free};
}

// There is no user to ask for a pass phrase.
int NoPassPhrase(char*, int, int, void*) { return -1; }

// Returns the first object that `read` finds in the file.
template <typename Owner, typename Read>
absl::StatusOr<Owner> First(const std::string& path, const char* what, Read read) {
  ASSIGN_OR_RETURN(const std::string pem, ReadFile(path, kMaxOperatorFileBytes));
  const Memory file = OpenMemory(pem);
  Owner found(read(file.get(), nullptr, &NoPassPhrase, nullptr));
  ERR_clear_error();
  if (found == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(path, " holds no ", what, " in PEM"));
  }
  return found;
}

absl::StatusOr<Certificate> FirstCertificate(const std::string& path) {
  return First<Certificate>(path, "certificate", &PEM_read_bio_X509);
}

absl::StatusOr<absl::Time> ReadEnd(const X509* certificate) {
  std::tm end = {};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) != 1)
    return absl::InvalidArgumentError("a certificate has no valid end");
  return absl::FromTM(end, absl::UTCTimeZone());
}

}  // namespace

absl::StatusOr<absl::Time> CertificatesEnd(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string pem, ReadFile(path, kMaxOperatorFileBytes));
  const Memory file = OpenMemory(pem);
  absl::Time first = absl::InfiniteFuture();
  while (const Certificate certificate{
      PEM_read_bio_X509(file.get(), nullptr, &NoPassPhrase, nullptr)}) {
    ASSIGN_OR_RETURN(const absl::Time end, ReadEnd(certificate.get()));
    first = std::min(first, end);
  }
  ERR_clear_error();  // the error at the end of the file
  if (first == absl::InfiniteFuture())
    return absl::InvalidArgumentError(absl::StrCat(path, " holds no certificate in PEM"));
  return first;
}

absl::Status CheckTlsFiles(const SecurityOptions& security) {
  ASSIGN_OR_RETURN(const Certificate certificate, FirstCertificate(security.tls_certificate));
  ASSIGN_OR_RETURN(const Key key, First<Key>(security.tls_key, "private key without a pass phrase",
                                             &PEM_read_bio_PrivateKey));
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(absl::StrCat("the private key in ", security.tls_key,
                                                   " does not belong to the certificate in ",
                                                   security.tls_certificate));
  }
  if (security.tls_client_ca.empty()) return absl::OkStatus();
  return FirstCertificate(security.tls_client_ca).status();
}

}  // namespace linnet::server
