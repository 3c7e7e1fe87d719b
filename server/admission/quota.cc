#include "server/admission/quota.h"

#include <algorithm>

namespace linnet::server {
namespace {

// The part of all that health calls may hold: almost two thousand watches by default.
constexpr int64_t kHealthPart = 8;

// The share of each of `count` holders; a third of a share stays free for another one.
int64_t Share(int64_t all, size_t count) {
  return static_cast<int64_t>(static_cast<double>(all) / (static_cast<double>(count) + 1.0 / 3));
}

}  // namespace

const Quota::Holder* Quota::Find(const std::string& client) const {
  const auto holder = clients_.find(client);
  return holder == clients_.end() ? nullptr : &holder->second;
}

int64_t Quota::ClientShare(const std::string& client) const {
  if (client == kHealthClient) return max_ / kHealthPart;
  const size_t holders = clients_.size() - (clients_.contains(kHealthClient) ? 1 : 0);
  return Share(max_, holders + (clients_.contains(client) ? 0 : 1));
}

Quota::Decision Quota::Check(const Caller& caller, int64_t amount) const {
  if (amount > max_ - held_) return Decision::kFull;
  const Holder* holder = Find(caller.client);
  if (holder == nullptr && caller.client != kHealthClient) return Decision::kFits;
  const int64_t held = holder == nullptr ? 0 : holder->held;
  if (amount > ClientShare(caller.client) - held) return Decision::kShareUsed;
  const int64_t holds = held_by(caller);
  if (holds > 0 && amount > share(caller) - holds) return Decision::kShareUsed;
  return Decision::kFits;
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

int64_t Quota::share(const Caller& caller) const {
  const Holder* holder = Find(caller.client);
  const int64_t of_client = ClientShare(caller.client);
  size_t callers = holder == nullptr ? 0 : holder->callers.size();
  if (holder == nullptr || !holder->callers.contains(caller.id)) ++callers;
  return caller.id.empty() && callers == 1 ? of_client : Share(of_client, callers);
}

}  // namespace linnet::server
