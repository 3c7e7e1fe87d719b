#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <map>
#include <vector>

#include "absl/strings/string_view.h"

namespace linnet::server {

// Returns the values of a header in the order in which they were sent, from gRPC's metadata of a
// call.
std::vector<absl::string_view> HeaderValues(
    const std::multimap<grpc::string_ref, grpc::string_ref>& metadata, absl::string_view name);

// Returns the bytes of all names and values.
int64_t HeaderBytes(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata);

}  // namespace linnet::server
