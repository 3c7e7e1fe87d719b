#include "server/admission/quota.h"

#include <algorithm>

namespace linnet::server {
namespace {

// The part of all that health calls may hold: almost two thousand watches by default.
constexpr int64_t kHealthPart = 8;
// The part up to which each network may hold one call.
constexpr int64_t kProbesPart = 4;

// The largest amount that somebody who holds `held` may take of what is free: three times what is
// free then is no less than what they hold.
int64_t Part(int64_t free, int64_t held) {
  return std::max<int64_t>(0, free - (free + held + 3) / 4);
}

}  // namespace

const Quota::Holder* Quota::Find(const std::string& client) const {
  const auto holder = clients_.find(client);
  return holder == clients_.end() ? nullptr : &holder->second;
}

int64_t Quota::Room(const Caller& caller) const {
  const Holder* holder = Find(caller.client);
  const int64_t held = holder == nullptr ? 0 : holder->held;
  const int64_t free = std::max<int64_t>(0, max_ - held_);
  if (caller.client == kHealthClient)
    return Part(std::clamp<int64_t>(max_ / kHealthPart - held, 0, free), held_by(caller));
  const int64_t of_client = Part(free, held);
  const bool alone = holder == nullptr || (holder->callers.size() == 1 && held_by(caller) > 0);
  return caller.id.empty() && alone ? of_client : Part(of_client, held_by(caller));
}

Quota::Decision Quota::Check(const Caller& caller, int64_t amount) const {
  if (amount <= Room(caller)) return Decision::kFits;
  const Holder* holder = Find(caller.client);
  const int64_t held = holder == nullptr ? 0 : holder->held;
  if (caller.client == kHealthClient && held_by(caller) == 0 && amount <= max_ / kProbesPart - held)
    return Decision::kFits;
  return holder == nullptr || amount > max_ - held_ ? Decision::kFull : Decision::kShareUsed;
}

void Quota::Take(const Caller& caller, int64_t amount) {
  if (amount <= 0) return;
  auto holder = clients_.find(caller.client);
  // Both insertions may throw std::bad_alloc; then nothing is taken.
  if (holder == clients_.end())
    holder = clients_.emplace(caller.client, Holder{.callers = {{caller.id, 0}}}).first;
  int64_t& held_by_caller = holder->second.callers[caller.id];
  held_by_caller += amount;
  holder->second.held += amount;
  held_ += amount;
}

void Quota::GiveBack(const Caller& caller, int64_t amount) {
  const auto holder = clients_.find(caller.client);
  if (amount <= 0 || holder == clients_.end()) return;
  const auto own = holder->second.callers.find(caller.id);
  if (own == holder->second.callers.end()) return;
  held_ -= amount;
  holder->second.held -= amount;
  if ((own->second -= amount) <= 0) holder->second.callers.erase(own);
  if (holder->second.callers.empty()) clients_.erase(holder);
}

int64_t Quota::held_by(const Caller& caller) const {
  const Holder* holder = Find(caller.client);
  if (holder == nullptr) return 0;
  const auto own = holder->callers.find(caller.id);
  return own == holder->callers.end() ? 0 : own->second;
}

}  // namespace linnet::server
