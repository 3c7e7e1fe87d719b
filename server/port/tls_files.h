#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/config/options.h"

namespace linnet::server {

// Checks the TLS files: a certificate in PEM, its private key, and CA certificates if clients must
// present theirs. gRPC would accept anything and then fail every handshake. The error names the
// file.
absl::Status CheckTlsFiles(const SecurityOptions& security);

// Returns the time at which a PEM file expires: the earliest end of its certificates.
absl::StatusOr<absl::Time> CertificatesEnd(const std::string& path);

}  // namespace linnet::server
