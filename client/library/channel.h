// Makes gRPC channels from ClientOptions.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "client/library/client.h"
#include "grpcpp/channel.h"

namespace linnet::client {

// INVALID_ARGUMENT if an option is out of its range or a certificate cannot be read.
absl::Status CheckOptions(const ClientOptions& options);

// True for an address in another form than HOST:PORT or a list of such: "unix:PATH", "dns:…".
bool HasScheme(const std::string& server);

bool UsesTls(const TlsOptions& tls);

// INVALID_ARGUMENT if a token would be sent unencrypted over a network.
absl::Status CheckTokenIsPrivate(const ClientOptions& options);

// True if the server's name stands for several addresses that calls are balanced over.
bool IsBalanced(const ClientOptions& options);

// Expects options that CheckOptions accepts. Each channel has connections of its own.
std::shared_ptr<grpc::Channel> MakeChannel(const ClientOptions& options);
// A channel to the same addresses without health checking: health requests are sent over it.
std::shared_ptr<grpc::Channel> MakeHealthChannel(const ClientOptions& options);

}  // namespace linnet::client
