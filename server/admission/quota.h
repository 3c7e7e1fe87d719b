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
// Nobody may take more than leaves a third of what they then hold free for others (the dynamic
// threshold of Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998): a single
// client holds three quarters of max, n that give back and take again max / (n + 1/3) each. One
// that comes later finds room, but of clients that keep what they hold each leaves only a quarter
// of what it has found. The callers of a client divide its share by the same rule; together they
// hold no more than a client without ids. The empty id counts as a caller, but reserves no room for
// others while it is the only one.
//
// Health calls (kHealthClient) need no token. Together they hold at most an eighth of max, which
// their networks divide by the same rule. Beyond that, even if it exceeds max, a network may hold
// one call until all hold a quarter: a probe must learn that a busy server is alive. Deterministic.
// Not thread-safe.
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
  // Max amount that the caller may hold in total, as long as the others hold what they do.
  int64_t share(const Caller& caller) const { return held_by(caller) + Room(caller); }

 private:
  struct Holder {
    int64_t held = 0;
    std::map<std::string, int64_t> callers;  // amount by id, of the callers that hold something
  };
  const Holder* Find(const std::string& client) const;
  // Max amount that the caller may take now.
  int64_t Room(const Caller& caller) const;

  int64_t max_;
  int64_t held_ = 0;
  std::map<std::string, Holder> clients_;  // only clients that hold something
};

}  // namespace linnet::server
