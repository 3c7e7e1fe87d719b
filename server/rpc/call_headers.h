#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <vector>

#include "absl/strings/string_view.h"

namespace linnet::server {

// The values of a header in the order in which they were sent: Headers of what gRPC has of a call.
std::vector<absl::string_view> ValuesOf(
    const std::multimap<grpc::string_ref, grpc::string_ref>& metadata, absl::string_view name);

}  // namespace linnet::server
