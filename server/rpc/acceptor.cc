#include "server/rpc/acceptor.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "server/log.h"

namespace linnet::server {
namespace {

// Wait for sockets to be closed where the process has no room for more.
constexpr absl::Duration kOutOfSockets = absl::Milliseconds(100);
// The log says no more often than this that connections are refused.
constexpr absl::Duration kLogEvery = absl::Seconds(10);

absl::Status SystemError(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

void Set(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof value);
}

// The address without the port, an IPv4 one as such whatever the socket.
std::string PeerOf(const sockaddr_storage& address, socklen_t length) {
  char host[NI_MAXHOST];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host, sizeof host, nullptr,
                  0, NI_NUMERICHOST) != 0)
    return "unknown";
  absl::string_view name = host;
  absl::ConsumePrefix(&name, "::ffff:");
  return std::string(name);
}

ino_t InodeOf(int socket) {
  struct stat facts;
  return fstat(socket, &facts) == 0 && S_ISSOCK(facts.st_mode) ? facts.st_ino : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Listen(const std::string& address,
                                                           const Limits& limits) {
  std::unique_ptr<Acceptor> acceptor(new Acceptor(limits));
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (!host.empty() && host.front() == '[') host = host.substr(1, host.size() - 2);
  const std::string port = address.substr(colon + 1);
  absl::Status status = absl::UnavailableError("no IPv6");
  if (host == "0.0.0.0") status = acceptor->Bind("::", port);
  if (!status.ok()) status = acceptor->Bind(host, port);
  if (!status.ok()) return status;
  acceptor->wake_ = eventfd(0, EFD_CLOEXEC);
  if (acceptor->wake_ < 0) return SystemError("eventfd");
  return acceptor;
}

absl::Status Acceptor::Bind(const std::string& host, const std::string& port) {
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
    // What is accepted inherits these.
    Set(listener, IPPROTO_TCP, TCP_NODELAY, 1);
    if (limits_.user_timeout != absl::InfiniteDuration()) {
      const int64_t milliseconds = absl::ToInt64Milliseconds(limits_.user_timeout);
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
  Close();
  if (wake_ >= 0) close(wake_);
}

void Acceptor::Start(Take take) {
  thread_ = std::thread([this, take = std::move(take)] { Run(take); });
}

void Acceptor::Close() {
  if (thread_.joinable()) {
    eventfd_write(wake_, 1);
    thread_.join();
  }
  for (int listener : std::exchange(listeners_, {})) close(listener);
}

void Acceptor::Run(const Take& take) {
  pthread_setname_np(pthread_self(), "linnet-accept");
  std::vector<pollfd> watched = {{wake_, POLLIN, 0}};
  for (int listener : listeners_) watched.push_back({listener, POLLIN, 0});
  while (true) {
    if (poll(watched.data(), watched.size(), -1) < 0) continue;  // a signal
    if (watched[0].revents != 0) return;
    for (size_t i = 1; i < watched.size(); ++i) {
      if (watched[i].revents != 0) Accept(watched[i].fd, take);
    }
  }
}

void Acceptor::Accept(int listener, const Take& take) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  const int socket = accept4(listener, reinterpret_cast<sockaddr*>(&address), &length,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (socket < 0) {  // gone again, or no room
    if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
      Log(LogLevel::kError, "accept_failed", {{"why", std::strerror(errno)}});
      absl::SleepFor(kOutOfSockets);
    }
    return;
  }
  if (Admit(socket, PeerOf(address, length))) {
    take(socket);
  } else {
    close(socket);
  }
}

bool Acceptor::Admit(int socket, const std::string& peer) {
  MutexLock lock(mu_);
  if (!WithinLimits(peer)) Prune();
  if (!WithinLimits(peer)) {
    ++refused_;
    if (const absl::Time now = absl::Now(); now - logged_ >= kLogEvery) {
      logged_ = now;
      Log(LogLevel::kWarning, "connection_refused",
          {{"peer", peer}, {"open", connections_.size()}, {"refused", refused_}});
    }
    return false;
  }
  if (const auto old = connections_.find(socket); old != connections_.end()) {
    // Its number was given to this one, so it was closed.
    if (--of_peer_[old->second.peer] == 0) of_peer_.erase(old->second.peer);
    connections_.erase(old);
  }
  connections_[socket] = {InodeOf(socket), peer};
  ++of_peer_[peer];
  return true;
}

bool Acceptor::WithinLimits(const std::string& peer) {
  const auto of_peer = of_peer_.find(peer);
  return (limits_.connections == 0 || std::ssize(connections_) < limits_.connections) &&
         (limits_.connections_per_peer == 0 || of_peer == of_peer_.end() ||
          of_peer->second < limits_.connections_per_peer);
}

void Acceptor::Prune() {
  for (auto next = connections_.begin(); next != connections_.end();) {
    const auto it = next++;
    if (InodeOf(it->first) == it->second.inode) continue;
    if (--of_peer_[it->second.peer] == 0) of_peer_.erase(it->second.peer);
    connections_.erase(it);
  }
}

int Acceptor::open() {
  MutexLock lock(mu_);
  Prune();
  return static_cast<int>(connections_.size());
}

int64_t Acceptor::refused() {
  MutexLock lock(mu_);
  return refused_;
}

}  // namespace linnet::server
