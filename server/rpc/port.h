#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/config/options.h"
#include "server/rpc/acceptor.h"

namespace linnet::server {

// What an unknown connection of a port may cost (Connections). A request of `max_request_bytes`
// fits where no token is asked for; with tokens what fits is what a client may send before the
// server has looked at its token: a TLS handshake, headers, and one window of HTTP/2.
Connections::Limits ConnectionLimits(const SecurityOptions& security, int64_t max_request_bytes);

// A port of the server, with what is served there and the limits of its connections.
class Port {
 public:
  struct Setup {
    std::string address;  // HOST:PORT; port 0 picks a free one
    std::string flag;     // that it was given by, for an error
    std::shared_ptr<grpc::ServerCredentials> credentials;
    std::vector<grpc::Service*> services;  // outlive the port
    Connections* connections = nullptr;    // so do these
    int64_t max_request_bytes = 4 << 20;   // what is longer is refused by gRPC, without details
  };
  static absl::StatusOr<std::unique_ptr<Port>> Open(const Setup& setup,
                                                    const SecurityOptions& security);
  ~Port();  // Close, at once

  const std::string& address() const { return address_; }
  // Closes the port and tells clients to go away, at once; then waits for their calls, and cuts off
  // what has not ended by the deadline: a client that does not read its answer. Once.
  void Close(absl::Time deadline);

 private:
  Port() = default;

  std::string address_;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace linnet::server
