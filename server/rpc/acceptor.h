#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/mutex.h"

namespace linnet::server {

// The listening sockets of a port. It counts the connections before anybody else gets them, which
// gRPC 1.51 does not, and closes those beyond the limits at once, so that a client learns of it at
// once and may try elsewhere.
class Acceptor {
 public:
  struct Limits {
    int connections = 0;           // at once; 0: any number
    int connections_per_peer = 0;  // of them from one address; 0: any number
    absl::Duration user_timeout = absl::InfiniteDuration();  // of bytes that nobody acknowledges
  };
  // Owns the socket, which does not block, from then on. On the acceptor's thread.
  using Take = std::function<void(int socket)>;

  // Listens on all addresses of HOST:PORT; port 0 picks one, and 0.0.0.0 stands for [::] as well,
  // where there is IPv6. UNAVAILABLE if the address is taken or not of this machine.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(const std::string& address,
                                                          const Limits& limits);
  ~Acceptor();  // Close

  int port() const { return port_; }
  // Begins to accept. Once.
  void Start(Take take);
  // Closes the port; connections that were taken live on. Nothing is taken afterwards.
  void Close();

  // Connections that are open, and those that were refused so far. Thread-safe.
  int open();
  int64_t refused();

 private:
  // A socket's number in the process may be given to another one, its inode says which it is.
  struct Connection {
    ino_t inode;
    std::string peer;
  };

  explicit Acceptor(const Limits& limits) : limits_(limits) {}
  absl::Status Bind(const std::string& host, const std::string& port);
  void Run(const Take& take);
  void Accept(int listener, const Take& take);
  bool Admit(int socket, const std::string& peer);
  // Forgets the connections that were closed.
  void Prune() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool WithinLimits(const std::string& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Limits limits_;
  int port_ = 0;
  std::vector<int> listeners_;
  int wake_ = -1;  // an eventfd that ends the thread
  Mutex mu_;
  std::map<int, Connection> connections_ ABSL_GUARDED_BY(mu_);  // by socket
  std::map<std::string, int> of_peer_ ABSL_GUARDED_BY(mu_);
  int64_t refused_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Time logged_ = absl::InfinitePast();  // that some were refused; the thread's
  std::thread thread_;
};

}  // namespace linnet::server
