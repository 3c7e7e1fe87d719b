#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "server/base/caller.h"

namespace linnet::server {

// The Caller::client of health calls, each of which has its network as Caller::id.
inline constexpr char kHealthClient[] = "health";

// Divides an amount of one resource (tokens or bytes) between clients, and the share of each client
// between its callers (Caller::id).
//
// With n clients that hold something, each may hold max / (n + 1/3): three quarters for a single
// one, so that there is always room for another client. A client that holds nothing may take all
// that is free. The callers of a client divide its share by the same rule; together they hold no
// more than a client without ids. The empty id counts as a caller, but reserves no room for others
// while it is the only one.
//
// Health calls (kHealthClient) need no token, so they are no client among the n: peers that nobody
// knows would reduce the shares of those that are known. Together they hold at most an eighth of
// max, which their networks divide by the same rule. Deterministic. Not thread-safe.
class Quota {
 public:
  explicit Quota(int64_t max) : max_(max) {}

  enum class Decision { kFits, kFull, kShareUsed };
  Decision Check(const Caller& caller, int64_t amount) const;

  void Take(const Caller& caller, int64_t amount);
  void GiveBack(const Caller& caller, int64_t amount);

  int64_t max() const { return max_; }
  int64_t held() const { return held_; }
  int64_t held_by(const Caller& caller) const;
  // Max amount that the caller may hold in total, counting it among those that hold something.
  int64_t share(const Caller& caller) const;

 private:
  struct Holder {
    int64_t held = 0;
    std::map<std::string, int64_t> callers;  // amount by id, of the callers that hold something
  };
  const Holder* Find(const std::string& client) const;
  int64_t ClientShare(const std::string& client) const;

  int64_t max_;
  int64_t held_ = 0;
  std::map<std::string, Holder> clients_;  // only clients that hold something
};

}  // namespace linnet::server
