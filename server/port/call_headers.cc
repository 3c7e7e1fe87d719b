#include "server/port/call_headers.h"

namespace linnet::server {

std::vector<absl::string_view> HeaderValues(
    const std::multimap<grpc::string_ref, grpc::string_ref>& metadata, absl::string_view name) {
  std::vector<absl::string_view> values;
  const auto [first, last] = metadata.equal_range(grpc::string_ref(name.data(), name.size()));
  for (auto it = first; it != last; ++it) values.emplace_back(it->second.data(), it->second.size());
  return values;
}

int64_t HeaderBytes(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  int64_t bytes = 0;
  for (const auto& [name, value] : metadata)
    bytes += static_cast<int64_t>(name.length() + value.length());
  return bytes;
}

}  // namespace linnet::server
