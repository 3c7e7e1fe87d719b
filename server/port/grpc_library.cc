#include "server/port/grpc_library.h"

#include <dlfcn.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "proto/loopback.h"
#include "server/base/log.h"

namespace linnet::server {

bool GrpcLibrary::has_header_defect() const {
  if (patched) return false;
  // The first fixed version of each series; all later series are fixed.
  constexpr std::array<std::array<int, 3>, 4> kFixed = {
      {{1, 53, 2}, {1, 54, 3}, {1, 55, 2}, {1, 56, 2}}};
  std::array<int, 3> numbers{};
  const std::vector<absl::string_view> parts = absl::StrSplit(version, absl::ByAnyChar(".-"));
  for (size_t i = 0; i < std::min(parts.size(), numbers.size()); ++i) {
    if (!absl::SimpleAtoi(parts[i], &numbers[i])) numbers[i] = 0;
  }
  for (const auto& fixed : kFixed) {
    if (std::pair(numbers[0], numbers[1]) == std::pair(fixed[0], fixed[1]))
      return numbers[2] < fixed[2];
  }
  return numbers < kFixed.back();
}

GrpcLibrary LoadedGrpc() {
  return {.version = grpc::Version(),
          .patched = dlsym(RTLD_DEFAULT, "linnet_grpc_patches") != nullptr};
}

void LogGrpc(const GrpcLibrary& library, const Options& options) {
  Log(LogLevel::kInfo, "grpc", {{"version", library.version}, {"patched", library.patched}});
  if (!library.has_header_defect() || !options.security.trusted_proxies.empty()) return;
  for (const std::string& address : {options.listen, options.admin_listen}) {
    if (address.empty() || IsLoopback(address)) continue;
    Log(LogLevel::kWarning, "grpc_with_defect",
        {{"version", library.version},
         {"listen", address},
         {"defect", "CVE-2023-33953: any client that can connect can use all of the CPU"},
         {"way_out", "./start.sh --patched-grpc, or a proxy in front; see SECURITY.md"}});
  }
}

}  // namespace linnet::server
