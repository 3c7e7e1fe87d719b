// How the client reaches a server.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "client/library/client.h"
#include "grpcpp/channel.h"

namespace linnet::client {

// INVALID_ARGUMENT if one is out of its range, or a certificate cannot be read.
absl::Status CheckOptions(const ClientOptions& options);

bool UsesTls(const TlsOptions& tls);

// INVALID_ARGUMENT if there is a token and others could read it on its way.
absl::Status CheckTokenIsPrivate(const ClientOptions& options);

// True if the server's name stands for addresses that calls shall take turns over.
bool IsBalanced(const ClientOptions& options);

// For options that are in their ranges. Each has connections of its own.
std::shared_ptr<grpc::Channel> MakeChannel(const ClientOptions& options);
// The same addresses without a look at their health: to ask for just that.
std::shared_ptr<grpc::Channel> MakeHealthChannel(const ClientOptions& options);

}  // namespace linnet::client
