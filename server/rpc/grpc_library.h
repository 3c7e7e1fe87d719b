#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "server/config/options.h"

namespace linnet::server {

// The gRPC that this process has loaded, which may be another one than it was built with.
struct GrpcLibrary {
  std::string version;   // "1.51.1"
  bool patched = false;  // by deps/grpc

  // Whether a peer that nobody has authenticated can make it keep and parse a header without end
  // (CVE-2023-33953; fixed in 1.53.2, 1.54.3, 1.55.2 and 1.56.2).
  bool has_header_defect() const;
};
GrpcLibrary LoadedGrpc();

// Says in the log which gRPC this is, and warns where other machines reach an address of a server
// whose gRPC has the defect and in front of which no proxy is known.
void LogGrpc(const GrpcLibrary& library, const Options& options);

}  // namespace linnet::server
