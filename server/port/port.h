#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/monotonic.h"
#include "server/config/options.h"
#include "server/port/acceptor.h"

namespace linnet::server {

// Limits on unauthenticated connections of a port (Connections). Without tokens a connection may
// send a request of `max_request_bytes`. With tokens it may send what precedes the check of a
// token: a TLS handshake, headers, and one window of HTTP/2.
Connections::Limits ConnectionLimits(const SecurityOptions& security, int64_t max_request_bytes);

// A port of the server, with its services and the limits of its connections.
class Port {
 public:
  struct Setup {
    std::string address;  // HOST:PORT; port 0 picks a free one
    std::string flag;     // the flag with the address, for error messages
    std::shared_ptr<grpc::ServerCredentials> credentials;
    std::vector<grpc::Service*> services;  // must outlive the port
    Connections* connections = nullptr;    // must outlive the port
    int64_t max_request_bytes = 4 << 20;   // gRPC refuses longer requests, without details
  };
  static absl::StatusOr<std::unique_ptr<Port>> Open(const Setup& setup,
                                                    const SecurityOptions& security);
  ~Port();  // closes at once

  const std::string& address() const { return address_; }
  // Closes the port and sends GOAWAY to all clients at once. Then waits for their calls, and at the
  // deadline cancels the rest, such as those of clients that do not read their answers. Call it
  // once.
  void Close(MonotonicTime deadline);

 private:
  Port() = default;

  std::string address_;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace linnet::server
