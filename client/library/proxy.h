// The way to a server: directly, or through the HTTP proxy that the environment names.
#pragma once

#include <optional>
#include <string>

namespace linnet::client {

// True if `server`, in any of the forms of ClientOptions::server, is this machine alone.
bool IsThisMachine(const std::string& server);

// The host that `server` names, without its scheme and port: what no_proxy is compared with.
std::string ServerHost(const std::string& server);

// A proxy, and the variable of the environment that names it.
struct Proxy {
  std::string address;  // HOST:PORT, without the user and the password of the variable
  std::string variable;
};

// The proxy through which a channel connects to `server`; nullopt if it connects directly.
//
// Reads grpc_proxy, https_proxy and http_proxy as gRPC does: the first one that is set. A server on
// this machine and a list of addresses have no proxy, and neither have the hosts of no_grpc_proxy,
// or else of no_proxy: names by their ends, as gRPC and curl match them, networks
// (192.0.2.0/24), and * for all.
std::optional<Proxy> FindProxy(const std::string& server);

}  // namespace linnet::client
