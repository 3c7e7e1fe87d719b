#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace linnet::server {

// So much of one thing, held by clients.
//
// A client alone may hold three quarters of it, and several the same each, so that there is always
// room for another one to begin; whoever holds nothing may take all that is free. Plain; not
// thread-safe.
class Quota {
 public:
  explicit Quota(int64_t most) : most_(most) {}

  enum class Answer { kFits, kFull, kShareUsed };
  Answer Ask(const std::string& client, int64_t amount) const;

  void Take(const std::string& client, int64_t amount);
  void GiveBack(const std::string& client, int64_t amount);

  int64_t most() const { return most_; }
  int64_t held() const { return held_; }
  int64_t held_by(const std::string& client) const;
  // What the client may hold, if it holds something.
  int64_t share(const std::string& client) const;

 private:
  int64_t most_;
  int64_t held_ = 0;
  std::map<std::string, int64_t> clients_;  // those that hold something
};

}  // namespace linnet::server
