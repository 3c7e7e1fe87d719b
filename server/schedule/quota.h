#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "server/base/caller.h"

namespace linnet::server {

// An amount of one thing, shared by clients, and a client's share by the callers behind it.
//
// A client alone may hold three quarters of all, and several the same each, so that there is always
// room for another one to begin; who holds nothing may take all that is free. A client's callers
// (Caller::id; the empty one is one of them) share in the same way what the client may hold, so
// that any number of them hold together no more than one client. A client that uses no ids has no
// other callers to leave room for. Plain; not thread-safe.
class Quota {
 public:
  explicit Quota(int64_t max) : max_(max) {}

  enum class Answer { kFits, kFull, kShareUsed };
  Answer Ask(const Caller& caller, int64_t amount) const;

  void Take(const Caller& caller, int64_t amount);
  void GiveBack(const Caller& caller, int64_t amount);

  int64_t max() const { return max_; }
  int64_t held() const { return held_; }
  int64_t held_by(const Caller& caller) const;
  // What the caller may hold, if it holds something.
  int64_t share(const Caller& caller) const;

 private:
  struct Holder {
    int64_t held = 0;
    std::map<std::string, int64_t> callers;  // those that hold something, by id
  };
  const Holder* Find(const std::string& client) const;
  int64_t ClientShare(const Holder* holder) const;

  int64_t max_;
  int64_t held_ = 0;
  std::map<std::string, Holder> clients_;  // those that hold something
};

}  // namespace linnet::server
