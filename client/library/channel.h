// How the client reaches a server.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "client/library/client.h"
#include "grpcpp/channel.h"

namespace linnet::client {

// INVALID_ARGUMENT if one is out of its range.
absl::Status CheckOptions(const ClientOptions& options);

// For options that are in their ranges.
std::shared_ptr<grpc::Channel> MakeChannel(const ClientOptions& options);

}  // namespace linnet::client
