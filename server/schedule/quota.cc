#include "server/schedule/quota.h"

namespace linnet::server {

Quota::Answer Quota::Ask(const std::string& client, int64_t amount) const {
  if (amount > most_ - held_) return Answer::kFull;
  const int64_t holds = held_by(client);
  if (holds > 0 && amount > share(client) - holds) return Answer::kShareUsed;
  return Answer::kFits;
}

void Quota::Take(const std::string& client, int64_t amount) {
  if (amount <= 0) return;
  clients_[client] += amount;  // first: it may find no memory
  held_ += amount;
}

void Quota::GiveBack(const std::string& client, int64_t amount) {
  const auto holder = clients_.find(client);
  if (amount <= 0 || holder == clients_.end()) return;
  held_ -= amount;
  if ((holder->second -= amount) <= 0) clients_.erase(holder);
}

int64_t Quota::held_by(const std::string& client) const {
  const auto holder = clients_.find(client);
  return holder == clients_.end() ? 0 : holder->second;
}

int64_t Quota::share(const std::string& client) const {
  const auto clients = static_cast<double>(clients_.size() + (clients_.contains(client) ? 0 : 1));
  // Room for a third of a client more: one alone has three quarters.
  return static_cast<int64_t>(static_cast<double>(most_) / (clients + 1.0 / 3));
}

}  // namespace linnet::server
