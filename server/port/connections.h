#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/monotonic.h"
#include "server/base/mutex.h"

namespace linnet::server {

// The connections of a port: limits their number, and what those of unknown clients may hold. A
// connection is known once a call on it has been authenticated or, without tokens, once a complete
// request message has arrived on it. Until then its peer can make the server buffer what it sends,
// so it is closed after a timeout, or earlier if it holds too much, or if all of them together do;
// those that hold the most are closed first. gRPC releases the memory of a connection some time
// after it was closed. If that and what is held reach twice the limit, all connections that have
// sent anything are closed, before gRPC reads it.
//
// It only decides: Acceptor closes what Excess returns. Every method but Excess takes constant or
// logarithmic time. Thread-safe.
class Connections {
 public:
  struct Limits {
    // Open at once; 0: no limit. A 64th of it more, at least one, for networks that have none: a
    // server whose probes were refused would be ended.
    int connections = 0;
    int connections_per_address = 0;  // open at once from one network (NetworkName); 0: no limit
    // Limits on unknown connections.
    absl::Duration timeout = absl::InfiniteDuration();
    int64_t bytes = 0;      // held by all of them together; 0: no limit
    int64_t bytes_per = 0;  // held by one; 0: no limit
    int64_t calls_per = 0;  // started on one; 0: no limit
    bool tokens = false;    // calls are authenticated by tokens
  };
  using Id = int64_t;
  // Memory of a call whose request has not arrived: gRPC's call, its headers and our objects.
  static constexpr int64_t kCallBytes = 16 << 10;

  explicit Connections(const Limits& limits) : limits_(limits) {}

  // Adds a connection from `peer`, HOST:PORT or [HOST]:PORT; nullopt if a limit is reached. Adds
  // none if it throws.
  std::optional<Id> Admit(const std::string& peer, MonotonicTime now);
  void Closed(Id id);
  // Sets the bytes received on it since it was made.
  void Received(Id id, int64_t bytes);
  // Returns the connections to close now; each one once.
  std::vector<Id> Excess(MonotonicTime now);
  bool known(Id id) const;
  // Returns the unknown connection that was admitted next after `id`; after the last one the first;
  // 0 if there is none.
  Id NextUnknown(Id id) const;

  int open() const;
  int unknown() const;  // open connections of unknown clients
  int64_t refused() const;
  int64_t expelled() const;  // number returned by Excess

  // A call, from its headers to its destruction.
  class Call {
   public:
    // `peer` is gRPC's: "ipv4:127.0.0.1:4711". With tokens, `authenticated` calls make their
    // connection known.
    Call(Connections& connections, absl::string_view peer, bool authenticated);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // A complete request message has arrived.
    void Received();

   private:
    Connections& connections_;
    Id id_ = 0;  // 0: not a connection of this port
  };

 private:
  struct Connection {
    std::string peer;
    std::string network;
    MonotonicTime accepted;
    bool known = false;
    int64_t received = 0;
    int64_t calls_begun = 0;
    int64_t calls_open = 0;  // whose request has not arrived
    int64_t closing = 0;     // held when Excess returned it

    int64_t held() const { return received + calls_open * kCallBytes; }
  };

  Id CallBegan(absl::string_view peer, bool authenticated);
  void CallEnded(Id id);
  void Known(Id id);
  // Changes what an unknown connection holds. `change` throws nothing.
  template <typename Change>
  void Update(Id id, Change change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Forget(Id id, const Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Erases all but its count in of_network_.
  void Erase(std::unordered_map<Id, Connection>::iterator it) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Limits limits_;
  mutable Mutex mu_;
  Id last_ ABSL_GUARDED_BY(mu_) = 0;
  std::unordered_map<Id, Connection> connections_ ABSL_GUARDED_BY(mu_);
  std::unordered_map<std::string, Id> of_peer_ ABSL_GUARDED_BY(mu_);
  std::unordered_map<std::string, int> of_network_ ABSL_GUARDED_BY(mu_);
  // The unknown connections, in the order of admission, and by what they hold.
  std::set<Id> unknown_ ABSL_GUARDED_BY(mu_);
  std::set<std::pair<int64_t, Id>> by_bytes_ ABSL_GUARDED_BY(mu_);
  std::set<Id> too_many_calls_ ABSL_GUARDED_BY(mu_);
  int64_t held_ ABSL_GUARDED_BY(mu_) = 0;     // by all unknown connections
  int64_t closing_ ABSL_GUARDED_BY(mu_) = 0;  // by those returned by Excess
  int64_t refused_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t expelled_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace linnet::server
