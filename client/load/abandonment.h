// How callers leave who do not wait for the answer.
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

// Does things after one and the same delay, in a thread of its own.
// Thread-safe. What has not been done by the end of its life is dropped.
class DelayedActions {
 public:
  explicit DelayedActions(absl::Duration after);

  void Add(std::function<void()> leave);

 private:
  void Work(std::stop_token end);

  const absl::Duration after_;
  std::mutex mu_;
  std::condition_variable_any changed_;
  std::deque<std::pair<absl::Time, std::function<void()>>> waiting_;  // in order, as all wait alike
  std::jthread thread_;
};

// A TCP connection that can be cut, as that of a caller whose machine is
// switched off: without a word of HTTP/2, so that the server sees no more than
// its end.
class Socket {
 public:
  // To HOST:PORT or [IPv6]:PORT. UNAVAILABLE if nobody answers.
  static absl::StatusOr<std::shared_ptr<Socket>> To(const std::string& server);
  ~Socket();

  // A descriptor of the same connection, which the caller owns.
  int Duplicate() const;
  void Cut() const;

 private:
  explicit Socket(int socket) : socket_(socket) {}
  const int socket_;
};

}  // namespace linnet::client
