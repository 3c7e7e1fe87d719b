#include "server/port/acceptor.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "proto/status_macros.h"
#include "server/base/exceptions.h"
#include "server/base/log.h"

namespace linnet::server {
namespace {

// Pause after the process has run out of sockets.
constexpr absl::Duration kOutOfSockets = absl::Milliseconds(100);
// Interval at which unknown connections are measured. In between they may exceed their limits, by
// some megabytes in total.
constexpr absl::Duration kRound = absl::Milliseconds(5);
// Unknown connections that are measured each round even without an event.
constexpr int kSwept = 64;
// Min interval between log events about refused connections.
constexpr absl::Duration kLogEvery = absl::Seconds(10);

absl::Status SystemError(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

void Set(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof value);
}

// Returns HOST:PORT or [HOST]:PORT; an IPv4 address in IPv4 notation even on an IPv6 socket.
std::string PrintAddress(const sockaddr_storage& address, socklen_t length) {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host, sizeof host, port,
                  sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "unknown:0";
  absl::string_view name = host;
  absl::ConsumePrefix(&name, "::ffff:");
  return absl::StrContains(name, ':') ? absl::StrCat("[", name, "]:", port)
                                      : absl::StrCat(name, ":", port);
}

// Events of a socket carry the id of its connection; those of listeners and the eventfd carry their
// negated descriptor.
void Watch(int epoll, int operation, int fd, uint32_t events, int64_t data) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = static_cast<uint64_t>(data);
  epoll_ctl(epoll, operation, fd, &event);
}

// Bytes received on a connection since it was made, as counted by the kernel.
int64_t BytesReceived(int socket) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return 0;
  return static_cast<int64_t>(info.tcpi_bytes_received);
}

// Ends a connection: gRPC reads the end of the stream and closes its side. Unread bytes are
// discarded, because gRPC would read all of them first, and the kernel may have megabytes.
void End(int socket) {
  constexpr size_t kAtOnce = 1 << 20;
  shutdown(socket, SHUT_RDWR);
  while (recv(socket, nullptr, kAtOnce, MSG_TRUNC | MSG_DONTWAIT) > 0) {
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Listen(const std::string& address,
                                                           absl::Duration user_timeout,
                                                           Connections& connections) {
  std::unique_ptr<Acceptor> acceptor(new Acceptor(connections));
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (!host.empty() && host.front() == '[') host = host.substr(1, host.size() - 2);
  const std::string port = address.substr(colon + 1);
  absl::Status status = absl::UnavailableError("no IPv6");
  if (host == "0.0.0.0") status = acceptor->Bind("::", port, user_timeout);
  if (!status.ok()) status = acceptor->Bind(host, port, user_timeout);
  RETURN_IF_ERROR(status);
  acceptor->epoll_ = epoll_create1(EPOLL_CLOEXEC);
  acceptor->wake_ = eventfd(0, EFD_CLOEXEC);
  if (acceptor->epoll_ < 0 || acceptor->wake_ < 0) return SystemError("epoll or eventfd");
  return acceptor;
}

absl::Status Acceptor::Bind(const std::string& host, const std::string& port,
                            absl::Duration user_timeout) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0)
    return absl::UnavailableError(absl::StrCat(host, ": ", gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    const int listener =
        socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (listener < 0) {
      if (address->ai_next != nullptr || !listeners_.empty()) continue;  // no IPv6 here
      return SystemError("socket");
    }
    listeners_.push_back(listener);
    sockaddr_storage bound{};
    std::memcpy(&bound, address->ai_addr, address->ai_addrlen);
    // All addresses of a name get the port that the first one picked.
    if (port_ != 0) {
      (address->ai_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                      : reinterpret_cast<sockaddr_in&>(bound).sin_port) =
          htons(static_cast<uint16_t>(port_));
    }
    // After a restart the port may be taken again at once, but never while another listens.
    Set(listener, SOL_SOCKET, SO_REUSEADDR, 1);
    if (address->ai_family == AF_INET6) Set(listener, IPPROTO_IPV6, IPV6_V6ONLY, host != "::");
    // Accepted sockets inherit these.
    Set(listener, IPPROTO_TCP, TCP_NODELAY, 1);
    if (user_timeout != absl::InfiniteDuration()) {
      const int64_t milliseconds = absl::ToInt64Milliseconds(user_timeout);
      Set(listener, IPPROTO_TCP, TCP_USER_TIMEOUT,
          static_cast<int>(std::min<int64_t>(milliseconds, std::numeric_limits<int>::max())));
    }
    socklen_t length = sizeof bound;
    if (bind(listener, reinterpret_cast<const sockaddr*>(&bound), address->ai_addrlen) != 0 ||
        listen(listener, SOMAXCONN) != 0 ||
        getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
      const absl::Status status = SystemError(host);
      for (int each : listeners_) close(each);
      listeners_.clear();
      return status;
    }
    port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                              : reinterpret_cast<sockaddr_in&>(bound).sin_port);
  }
  return absl::OkStatus();
}

Acceptor::~Acceptor() {
  GoTo(State::kEnded);
  if (thread_.joinable()) thread_.join();
  CloseListeners();
  for (const auto& [id, socket] : sockets_) close(socket);
  if (wake_ >= 0) close(wake_);
  if (epoll_ >= 0) close(epoll_);
}

void Acceptor::Start(Take take) {
  // A connection needs two file descriptors: gRPC's and the duplicate.
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  {
    MutexLock lock(mu_);
    wanted_ = state_ = State::kAccepting;
  }
  try {
    thread_ = std::thread([this, take = std::move(take)] { Run(take); });
  } catch (...) {  // GoTo would wait for the thread
    MutexLock lock(mu_);
    wanted_ = state_ = State::kNotStarted;
    throw;
  }
}

void Acceptor::Close() {
  if (thread_.joinable()) {
    GoTo(State::kWatching);  // the thread closes them
  } else {
    CloseListeners();
  }
}

void Acceptor::GoTo(State state) {
  MutexLock lock(mu_);
  if (state_ == State::kNotStarted || wanted_ >= state) return;
  wanted_ = state;
  eventfd_write(wake_, 1);
  while (state_ < state) changed_.Wait(mu_);
}

void Acceptor::CloseListeners() {
  for (int listener : std::exchange(listeners_, {})) close(listener);
}

void Acceptor::Run(const Take& take) {
  pthread_setname_np(pthread_self(), "linnet-accept");
  Watch(epoll_, EPOLL_CTL_ADD, wake_, EPOLLIN, -wake_);
  for (int listener : listeners_) Watch(epoll_, EPOLL_CTL_ADD, listener, EPOLLIN, -listener);
  std::array<epoll_event, 64> events;
  while (true) {
    const int timeout = connections_.unknown() == 0 && measured_.empty()
                            ? -1
                            : static_cast<int>(absl::ToInt64Milliseconds(kRound));
    const int count = epoll_wait(epoll_, events.data(), events.size(), timeout);
    for (int i = 0; i < count; ++i) {
      const auto data = static_cast<int64_t>(events[i].data.u64);
      if (data == -wake_) {
        eventfd_t value;
        eventfd_read(wake_, &value);
        MutexLock lock(mu_);
        state_ = wanted_;
        CloseListeners();
        changed_.NotifyAll();
        if (state_ == State::kEnded) return;
        continue;
      }
      try {
        if (data >= 0) {
          OfConnection(data, events[i].events);
        } else if (std::ranges::count(listeners_, -data) != 0) {
          Accept(static_cast<int>(-data), take);
        }
      } catch (...) {  // the other connections are served as ever
        LogException("connection_failed");
        if (data >= 0) Drop(data);
      }
    }
    if (const MonotonicTime now = MonotonicNow(); Elapsed(round_, now) >= kRound) {
      round_ = now;
      try {
        EndRound();
      } catch (...) {  // the next round does what is left
        LogException("connections_not_measured");
      }
    }
  }
}

void Acceptor::OfConnection(Connections::Id id, uint32_t events) {
  if ((events & (EPOLLHUP | EPOLLERR)) == 0) return Measure(id);
  if (const auto it = sockets_.find(id); it != sockets_.end()) {
    close(it->second);
    sockets_.erase(it);
    connections_.Closed(id);
  }
}

void Acceptor::Drop(Connections::Id id) {
  if (const auto it = sockets_.find(id); it != sockets_.end()) {
    End(it->second);
    close(it->second);
    sockets_.erase(it);
  }
  connections_.Closed(id);
}

void Acceptor::Accept(int listener, const Take& take) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  const int socket = accept4(listener, reinterpret_cast<sockaddr*>(&address), &length,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
  const int watched = socket < 0 ? -1 : fcntl(socket, F_DUPFD_CLOEXEC, 0);
  if (watched < 0) {  // already closed, or no descriptor
    if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
      Log(LogLevel::kError, "accept_failed", {{"why", std::strerror(errno)}});
      if (socket >= 0) close(socket);
      absl::SleepFor(kOutOfSockets);
    }
    return;
  }
  const MonotonicTime now = MonotonicNow();
  std::string peer;
  std::optional<Connections::Id> id;
  try {
    peer = PrintAddress(address, length);
    id = connections_.Admit(peer, now);
    if (id.has_value()) sockets_[*id] = watched;
  } catch (...) {
    if (id.has_value()) connections_.Closed(*id);
    close(watched);
    close(socket);
    throw;
  }
  if (id.has_value()) {
    Watch(epoll_, EPOLL_CTL_ADD, watched, EPOLLIN | EPOLLONESHOT, *id);
    try {
      return take(socket);
    } catch (...) {
      Drop(*id);
      throw;
    }
  }
  close(watched);
  close(socket);
  if (logged_.has_value() && Elapsed(*logged_, now) < kLogEvery) return;
  logged_ = now;
  Log(LogLevel::kWarning, "connection_refused",
      {{"peer", peer}, {"open", connections_.open()}, {"refused", connections_.refused()}});
}

void Acceptor::Measure(Connections::Id id) {
  const auto it = sockets_.find(id);
  if (it == sockets_.end()) return;
  connections_.Received(id, BytesReceived(it->second));
  measured_.push_back(id);
}

void Acceptor::Sweep() {
  const int count = std::min(kSwept, connections_.unknown());
  for (int i = 0; i < count; ++i) {
    swept_ = connections_.NextUnknown(swept_);
    if (const auto it = sockets_.find(swept_); it != sockets_.end())
      connections_.Received(swept_, BytesReceived(it->second));
  }
}

void Acceptor::EndRound() {
  for (Connections::Id id : std::exchange(measured_, {})) {
    const auto it = sockets_.find(id);
    if (it == sockets_.end()) continue;
    connections_.Received(id, BytesReceived(it->second));
    // A known connection is no longer measured; only its end is watched.
    Watch(epoll_, EPOLL_CTL_MOD, it->second, connections_.known(id) ? 0 : EPOLLIN | EPOLLONESHOT,
          id);
  }
  Sweep();
  const std::vector<Connections::Id> excess = connections_.Excess(MonotonicNow());
  for (Connections::Id id : excess) {
    if (const auto it = sockets_.find(id); it != sockets_.end()) End(it->second);
  }
  if (!excess.empty()) {
    Log(LogLevel::kInfo, "connections_closed_unauthenticated",
        {{"closed", excess.size()}, {"in_all", connections_.expelled()}});
  }
}

}  // namespace linnet::server
