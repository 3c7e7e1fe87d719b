#include "server/port/connections.h"

#include <algorithm>
#include <utility>

#include "server/identity/peer_address.h"

namespace linnet::server {

std::optional<Connections::Id> Connections::Admit(const std::string& peer, MonotonicTime now) {
  const std::string network = NetworkName(peer);
  MutexLock lock(mu_);
  const auto of_network = of_network_.find(network);
  // A network's first connection, such as that of a probe of a busy server, has some more room.
  const int more = of_network == of_network_.end() ? std::max(1, limits_.connections / 64) : 0;
  const bool full =
      limits_.connections != 0 && std::ssize(connections_) >= limits_.connections + more;
  const bool network_full = limits_.connections_per_address != 0 &&
                            of_network != of_network_.end() &&
                            of_network->second >= limits_.connections_per_address;
  if (full || network_full) {
    ++refused_;
    return std::nullopt;
  }
  const Id id = ++last_;
  try {
    connections_[id] = {.peer = peer, .network = network, .accepted = now};
    of_peer_[peer] = id;  // a former connection from this peer has been closed
    unknown_.insert(id);
    by_bytes_.insert({0, id});
    ++of_network_[network];
  } catch (...) {  // no memory: nothing has changed
    if (const auto it = connections_.find(id); it != connections_.end()) Erase(it);
    throw;
  }
  return id;
}

void Connections::Closed(Id id) {
  MutexLock lock(mu_);
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;
  closing_ -= it->second.closing;
  if (const auto of_network = of_network_.find(it->second.network); --of_network->second == 0)
    of_network_.erase(of_network);
  Erase(it);
}

void Connections::Erase(std::unordered_map<Id, Connection>::iterator it) {
  const auto& [id, connection] = *it;
  Forget(id, connection);
  if (const auto of_peer = of_peer_.find(connection.peer);
      of_peer != of_peer_.end() && of_peer->second == id)
    of_peer_.erase(of_peer);
  connections_.erase(it);
}

void Connections::Forget(Id id, const Connection& connection) {
  if (unknown_.erase(id) == 0) return;
  by_bytes_.erase({connection.held(), id});
  held_ -= connection.held();
}

template <typename Change>
void Connections::Update(Id id, Change change) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;
  if (!unknown_.contains(id)) return change(it->second);
  auto entry = by_bytes_.extract({it->second.held(), id});  // inserted again without an allocation
  held_ -= it->second.held();
  change(it->second);
  entry.value() = {it->second.held(), id};
  by_bytes_.insert(std::move(entry));
  held_ += it->second.held();
}

void Connections::Received(Id id, int64_t bytes) {
  MutexLock lock(mu_);
  Update(id, [bytes](Connection& connection) {
    connection.received = std::max(connection.received, bytes);
  });
}

std::vector<Connections::Id> Connections::Excess(MonotonicTime now) {
  std::vector<Id> excess;
  MutexLock lock(mu_);
  // At most all unknown connections. Reserved first: those that are found must be returned.
  excess.reserve(unknown_.size());
  const auto expel = [&](Id id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    Connection& connection = connections_.at(id);
    excess.push_back(id);
    Forget(id, connection);
    closing_ += connection.closing = connection.held();
    ++expelled_;
  };
  while (!unknown_.empty() &&
         Elapsed(connections_.at(*unknown_.begin()).accepted, now) >= limits_.timeout)
    expel(*unknown_.begin());
  while (!by_bytes_.empty()) {
    const auto [bytes, id] = *by_bytes_.rbegin();
    const bool too_much = limits_.bytes_per != 0 && bytes > limits_.bytes_per;
    const bool all_too_much =
        limits_.bytes != 0 && (held_ > limits_.bytes || held_ + closing_ > 2 * limits_.bytes);
    if (!too_much && (!all_too_much || bytes == 0)) break;
    expel(id);
  }
  for (Id id : too_many_calls_) {
    if (unknown_.contains(id)) expel(id);
  }
  too_many_calls_.clear();
  return excess;
}

bool Connections::known(Id id) const {
  MutexLock lock(mu_);
  const auto it = connections_.find(id);
  return it != connections_.end() && it->second.known;
}

Connections::Id Connections::NextUnknown(Id id) const {
  MutexLock lock(mu_);
  const auto next = unknown_.upper_bound(id);
  if (next != unknown_.end()) return *next;
  return unknown_.empty() ? 0 : *unknown_.begin();
}

int Connections::open() const {
  MutexLock lock(mu_);
  return static_cast<int>(connections_.size());
}

int Connections::unknown() const {
  MutexLock lock(mu_);
  return static_cast<int>(unknown_.size());
}

int64_t Connections::refused() const {
  MutexLock lock(mu_);
  return refused_;
}

int64_t Connections::expelled() const {
  MutexLock lock(mu_);
  return expelled_;
}

Connections::Id Connections::CallBegan(absl::string_view peer, bool authenticated) {
  const std::string address = PeerAddress(peer);
  MutexLock lock(mu_);
  const auto of_peer = of_peer_.find(address);
  if (of_peer == of_peer_.end()) return 0;
  const Id id = of_peer->second;
  bool too_many = false;
  Update(id, [&](Connection& connection) {
    ++connection.calls_open;
    too_many = ++connection.calls_begun > limits_.calls_per && limits_.calls_per != 0;
  });
  if (too_many) too_many_calls_.insert(id);
  if (limits_.tokens && authenticated) {
    Forget(id, connections_.at(id));
    connections_.at(id).known = true;
  }
  return id;
}

void Connections::CallEnded(Id id) {
  MutexLock lock(mu_);
  Update(id, [](Connection& connection) { --connection.calls_open; });
}

void Connections::Known(Id id) {
  MutexLock lock(mu_);
  const auto it = connections_.find(id);
  if (it == connections_.end() || limits_.tokens) return;
  Forget(id, it->second);
  it->second.known = true;
}

Connections::Call::Call(Connections& connections, absl::string_view peer, bool authenticated)
    : connections_(connections), id_(connections.CallBegan(peer, authenticated)) {}

Connections::Call::~Call() {
  if (id_ != 0) connections_.CallEnded(id_);
}

void Connections::Call::Received() {
  if (id_ != 0) connections_.Known(id_);
}

}  // namespace linnet::server
