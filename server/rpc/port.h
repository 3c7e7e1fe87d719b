#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/options.h"
#include "server/rpc/acceptor.h"

namespace linnet::server {

// A port of the server, with what is served there and the limits of its connections.
class Port {
 public:
  struct Setup {
    std::string address;  // HOST:PORT; port 0 picks a free one
    std::string flag;     // that it was given by, for an error
    std::shared_ptr<grpc::ServerCredentials> credentials;
    std::vector<grpc::Service*> services;  // outlive the port
    int64_t max_request_bytes = 4 << 20;   // what is longer is refused by gRPC, without details
  };
  static absl::StatusOr<std::unique_ptr<Port>> Open(const Setup& setup,
                                                    const SecurityOptions& security);
  ~Port();  // Close, at once

  const std::string& address() const { return address_; }
  // Connections that are open, and those that were refused so far because of their number.
  int connections() const { return acceptor_->open(); }
  int64_t refused() const { return acceptor_->refused(); }
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
