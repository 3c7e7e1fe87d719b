#pragma once

#include <cstdint>
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
#include "server/port/connections.h"

namespace linnet::server {

// The listening sockets of a port. gRPC 1.51 neither counts its connections nor tells which one
// carries a call, so this class accepts them. It closes connections above the limits at once, so
// that clients can try elsewhere, and later those that Connections::Excess returns. It keeps a
// duplicate of each socket, which shows when gRPC is done with it and whose number cannot be reused
// until then. A connection for which there is no memory is closed, and logged as connection_failed.
class Acceptor {
 public:
  // Takes ownership of the non-blocking socket, also if it throws. Called on the acceptor's thread.
  using Take = std::function<void(int socket)>;

  // Listens on all addresses of HOST:PORT; port 0 picks one, and 0.0.0.0 includes [::] where IPv6
  // is available. If a client does not acknowledge bytes for `user_timeout`, its connection ends.
  // UNAVAILABLE if the address is taken or not of this machine. `connections` must outlive the
  // acceptor.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(const std::string& address,
                                                          absl::Duration user_timeout,
                                                          Connections& connections);
  ~Acceptor();  // closes

  int port() const { return port_; }
  // Starts to accept. Call it once.
  void Start(Take take);
  // Stops accepting. Accepted connections live on, and are watched until the destructor.
  void Close();

 private:
  explicit Acceptor(Connections& connections) : connections_(connections) {}
  absl::Status Bind(const std::string& host, const std::string& port, absl::Duration user_timeout);
  void Run(const Take& take);
  // If it throws, that connection is closed.
  void Accept(int listener, const Take& take);
  void OfConnection(Connections::Id id, uint32_t events);  // epoll's
  // Ends a connection for which there is no memory.
  void Drop(Connections::Id id);
  // Measures an unknown connection now, and again at the end of the round.
  void Measure(Connections::Id id);
  // Measures some unknown connections in turn: one whose bytes gRPC has read before epoll saw them
  // makes no event.
  void Sweep();
  void EndRound();

  enum class State { kNotStarted, kAccepting, kWatching, kEnded };
  // Switches the thread to that state, and waits until it has.
  void GoTo(State state);
  void CloseListeners();

  Connections& connections_;
  int port_ = 0;
  std::vector<int> listeners_;
  int epoll_ = -1;
  int wake_ = -1;  // an eventfd that signals a new wanted_ state
  Mutex mu_;
  CondVar changed_;
  State wanted_ ABSL_GUARDED_BY(mu_) = State::kNotStarted;
  State state_ ABSL_GUARDED_BY(mu_) = State::kNotStarted;
  // Used by the thread only:
  std::unordered_map<Connections::Id, int> sockets_;  // duplicates, until gRPC closes its own
  std::vector<Connections::Id> measured_;             // in this round
  Connections::Id swept_ = 0;                         // the last one that Sweep measured
  MonotonicTime round_;                               // when it began
  std::optional<MonotonicTime> logged_;               // when refused connections were last logged
  std::thread thread_;
};

}  // namespace linnet::server
