#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/config/options.h"

namespace linnet::server {

// Whether the files can do what they are for: a certificate in PEM, the private key that belongs to
// it, and certificates of authorities if clients have to show theirs. gRPC would take anything, and
// then fail every handshake. The error names the file.
absl::Status CheckTlsFiles(const SecurityOptions& security);

// When the certificates of a file, PEM, are no longer valid; of a chain, when the first of them is
// not.
absl::StatusOr<absl::Time> CertificatesEnd(const std::string& path);

}  // namespace linnet::server
