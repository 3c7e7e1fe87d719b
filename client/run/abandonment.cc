#include "client/run/abandonment.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

namespace linnet::client {

DelayedActions::DelayedActions(absl::Duration delay)
    : delay_(delay), thread_([this](std::stop_token end) { Work(std::move(end)); }) {}

void DelayedActions::Add(std::function<void()> action) {
  std::lock_guard lock(mu_);
  waiting_.emplace_back(absl::Now() + delay_, std::move(action));
  changed_.notify_one();
}

void DelayedActions::Work(std::stop_token end) {
  std::unique_lock lock(mu_);
  while (!end.stop_requested()) {
    if (waiting_.empty()) {
      changed_.wait(lock, end, [this] { return !waiting_.empty(); });
      continue;
    }
    const absl::Duration left = waiting_.front().first - absl::Now();
    if (left > absl::ZeroDuration()) {
      changed_.wait_for(lock, end, absl::ToChronoNanoseconds(left), [] { return false; });
      continue;
    }
    const std::function<void()> action = std::move(waiting_.front().second);
    waiting_.pop_front();
    lock.unlock();
    action();
    lock.lock();
  }
}

absl::StatusOr<std::shared_ptr<Socket>> Socket::Connect(const std::string& server,
                                                        absl::Duration timeout) {
  const size_t colon = server.rfind(':');
  if (colon == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat("\"", server, "\" is not HOST:PORT"));
  }
  absl::string_view host = absl::string_view(server).substr(0, colon);
  absl::ConsumePrefix(&host, "[");
  absl::ConsumeSuffix(&host, "]");
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* addresses = nullptr;
  if (const int error = getaddrinfo(std::string(host).c_str(), server.substr(colon + 1).c_str(),
                                    &hints, &addresses)) {
    return absl::UnavailableError(absl::StrCat("cannot reach ", server, ": ", gai_strerror(error)));
  }
  int error = 0;
  std::shared_ptr<Socket> connection;
  const timeval limit = absl::ToTimeval(timeout);
  for (const addrinfo* a = addresses; a != nullptr && connection == nullptr; a = a->ai_next) {
    const int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0) {
      connection.reset(new Socket(fd));
      break;
    }
    error = errno == EINPROGRESS ? ETIMEDOUT : errno;
    if (fd >= 0) close(fd);
  }
  freeaddrinfo(addresses);
  if (connection == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot reach ", server, ": ", std::strerror(error)));
  }
  return connection;
}

Socket::~Socket() { close(socket_); }

absl::StatusOr<int> Socket::Duplicate() const {
  const int duplicate = dup(socket_);
  if (duplicate >= 0) return duplicate;
  return absl::UnavailableError(
      absl::StrCat("no descriptor for a connection: ", std::strerror(errno)));
}

void Socket::Cut() const { shutdown(socket_, SHUT_RDWR); }

}  // namespace linnet::client
