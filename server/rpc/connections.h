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

// The connections of a port: how many there may be, and what those may hold of which nobody knows
// yet who made them. A connection is known once a call on it has been authenticated or, where no
// token is asked for, once a request message of it has come as a whole. Until then its peer can
// make the server keep what it sends; so it is closed after a timeout, and before that if it holds
// too much or if all of them together do, that which holds most first. gRPC gives back what a
// connection held some time after it was closed; where that and what is held come to twice the
// limit, all that have sent anything are closed, before gRPC reads it.
//
// It decides and does not touch a socket: Acceptor closes what Excess returns. Every method but
// Excess takes constant or logarithmic time, also at the limits. Thread-safe.
class Connections {
 public:
  struct Limits {
    int connections = 0;              // at once; 0: any number
    int connections_per_address = 0;  // of them from one address; 0: any number
    // Of a connection that is not known.
    absl::Duration timeout = absl::InfiniteDuration();
    int64_t bytes = 0;      // that all of them may hold together; 0: any number
    int64_t bytes_per = 0;  // that one may hold; 0: any number
    int64_t calls_per = 0;  // that may begin on one; 0: any number
    bool tokens = false;    // whether a call is authenticated by one
  };
  using Id = int64_t;
  // What a call holds whose request has not come: gRPC's call, its headers and ours.
  static constexpr int64_t kCallBytes = 16 << 10;

  explicit Connections(const Limits& limits) : limits_(limits) {}

  // A new connection from `peer`, HOST:PORT or [HOST]:PORT; none beyond the limits.
  std::optional<Id> Admit(const std::string& peer, MonotonicTime now);
  void Closed(Id id);
  // So many bytes have come on it since it was made.
  void Received(Id id, int64_t bytes);
  // Connections to close now; each once.
  std::vector<Id> Excess(MonotonicTime now);
  bool known(Id id) const;

  int open() const;
  int unknown() const;  // of them
  int64_t refused() const;
  int64_t expelled() const;  // that Excess has returned

  // A call, from its headers until this dies.
  class Call {
   public:
    // `peer` is gRPC's: "ipv4:127.0.0.1:4711". With tokens, `authenticated` calls make their
    // connection known.
    Call(Connections& connections, absl::string_view peer, bool authenticated);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // A request message has come as a whole.
    void Received();

   private:
    Connections& connections_;
    Id id_ = 0;  // 0: not of this port
  };

 private:
  struct Connection {
    std::string peer;
    std::string address;
    MonotonicTime admitted;
    bool known = false;
    int64_t received = 0;
    int64_t calls_begun = 0;
    int64_t calls_open = 0;  // of which no request has come
    int64_t closing = 0;     // what it held when Excess returned it

    int64_t held() const { return received + calls_open * kCallBytes; }
  };

  Id CallBegan(absl::string_view peer, bool authenticated);
  void CallEnded(Id id);
  void Known(Id id);
  // Changes what an unknown connection holds.
  template <typename Change>
  void Update(Id id, Change change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Forget(Id id, const Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Limits limits_;
  mutable Mutex mu_;
  Id last_ ABSL_GUARDED_BY(mu_) = 0;
  std::unordered_map<Id, Connection> connections_ ABSL_GUARDED_BY(mu_);
  std::unordered_map<std::string, Id> of_peer_ ABSL_GUARDED_BY(mu_);
  std::unordered_map<std::string, int> of_address_ ABSL_GUARDED_BY(mu_);
  // Those that are not known, in the order in which they came, and by what they hold.
  std::set<Id> unknown_ ABSL_GUARDED_BY(mu_);
  std::set<std::pair<int64_t, Id>> by_bytes_ ABSL_GUARDED_BY(mu_);
  std::set<Id> too_many_calls_ ABSL_GUARDED_BY(mu_);
  int64_t held_ ABSL_GUARDED_BY(mu_) = 0;     // by all of them
  int64_t closing_ ABSL_GUARDED_BY(mu_) = 0;  // by those that Excess has returned
  int64_t refused_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t expelled_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace linnet::server
