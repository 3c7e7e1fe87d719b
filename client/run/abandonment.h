// Abandons calls: runs actions after a delay and cuts TCP connections.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace linnet::client {

// Runs each action after the same delay, in a thread of its own. The destructor drops the actions
// that have not run. Thread-safe.
class DelayedActions {
 public:
  explicit DelayedActions(absl::Duration delay);

  void Add(std::function<void()> action);

 private:
  void Work(std::stop_token end);

  const absl::Duration delay_;
  std::mutex mu_;
  std::condition_variable_any changed_;
  std::deque<std::pair<absl::Time, std::function<void()>>> waiting_;  // in order of time
  std::jthread thread_;
};

// A TCP connection that can be cut without any HTTP/2 frame, like that of a client that crashes:
// the server sees only the end of the connection.
class Socket {
 public:
  // Connects to HOST:PORT or [IPv6]:PORT. UNAVAILABLE if the connection fails, to each address of
  // the host, or takes longer than `timeout`, which also bounds each send later.
  static absl::StatusOr<std::shared_ptr<Socket>> Connect(const std::string& server,
                                                         absl::Duration timeout);
  ~Socket();

  // A new descriptor of the same connection; the caller owns it. UNAVAILABLE if there is none left.
  absl::StatusOr<int> Duplicate() const;
  void Cut() const;

 private:
  explicit Socket(int socket) : socket_(socket) {}
  const int socket_;
};

}  // namespace linnet::client
