#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/monotonic.h"
#include "server/base/mutex.h"
#include "server/rpc/connections.h"

namespace linnet::server {

// The listening sockets of a port. gRPC 1.51 neither counts its connections nor tells which of them
// carries a call, so this accepts them: it closes at once those beyond the limits, so that a client
// may try elsewhere, and later those that Connections names. For that it keeps a duplicate of each
// socket, which tells when gRPC is done with it and cannot be the number of another one by then.
class Acceptor {
 public:
  // Owns the socket, which does not block, from then on. On the acceptor's thread.
  using Take = std::function<void(int socket)>;

  // Listens on all addresses of HOST:PORT; port 0 picks one, and 0.0.0.0 stands for [::] as well,
  // where there is IPv6. Bytes that a client does not acknowledge for `user_timeout` end its
  // connection. UNAVAILABLE if the address is taken or not of this machine. `connections` outlives
  // the acceptor.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(const std::string& address,
                                                          absl::Duration user_timeout,
                                                          Connections& connections);
  ~Acceptor();  // Close

  int port() const { return port_; }
  // Begins to accept. Once.
  void Start(Take take);
  // Accepts no more; connections that were taken live on, and are watched until this dies.
  void Close();

 private:
  explicit Acceptor(Connections& connections) : connections_(connections) {}
  absl::Status Bind(const std::string& host, const std::string& port, absl::Duration user_timeout);
  void Run(const Take& take);
  void Accept(int listener, const Take& take);
  // Of a connection that is not known: how much has come, now and again in the next round.
  void Measure(Connections::Id id);
  void EndRound();

  enum class State { kNotStarted, kAccepting, kWatching, kEnded };
  // Has the thread go over to that state, and waits until it has.
  void GoTo(State state);
  void CloseListeners();

  Connections& connections_;
  int port_ = 0;
  std::vector<int> listeners_;
  int epoll_ = -1;
  int wake_ = -1;  // an eventfd: there is another state to go to
  Mutex mu_;
  CondVar changed_;
  State wanted_ ABSL_GUARDED_BY(mu_) = State::kNotStarted;
  State state_ ABSL_GUARDED_BY(mu_) = State::kNotStarted;
  // The thread's:
  std::unordered_map<Connections::Id, int> sockets_;  // duplicates, until gRPC closes its own
  std::vector<Connections::Id> measured_;             // in this round
  MonotonicTime round_;                               // when it began
  std::optional<MonotonicTime> logged_;  // when the log last had that some were refused
  std::thread thread_;
};

}  // namespace linnet::server
