#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "server/config/options.h"

namespace linnet::server {

// The gRPC library that this process has loaded, which may differ from the one it was built with.
struct GrpcLibrary {
  std::string version;   // "1.51.1"
  bool patched = false;  // by deps/grpc

  // True if an unauthenticated peer can make it buffer and parse a header without end
  // (CVE-2023-33953; fixed in 1.53.2, 1.54.3, 1.55.2 and 1.56.2).
  bool has_header_defect() const;
};
GrpcLibrary LoadedGrpc();

// Logs the version of gRPC. Warns if it has the defect and other machines can reach an address of
// the server without a known proxy in front.
void LogGrpc(const GrpcLibrary& library, const Options& options);

}  // namespace linnet::server
