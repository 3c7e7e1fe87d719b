#pragma once

#include "absl/status/status.h"
#include "server/options.h"

namespace linnet::server {

// Whether the files can do what they are for: a certificate in PEM, the private key that belongs to
// it, and certificates of authorities if clients have to show theirs. gRPC would take anything, and
// then fail every handshake. The error names the file.
absl::Status CheckTlsFiles(const SecurityOptions& security);

}  // namespace linnet::server
