#include "server/schedule/waiting_queue.h"

namespace linnet::server {

void WaitingQueue::Push(std::unique_ptr<Sequence> owned, bool started) {
  const Sequence& sequence = *owned;
  const uint64_t call = sequence.caller.call;
  const Ticket ticket = queue_.Push(CallerFlow(sequence.caller), call,
                                    static_cast<double>(sequence.work()), std::move(owned));
  if (sequence.deadline != absl::InfiniteFuture())
    deadlines_.emplace(std::pair(sequence.deadline, ticket.number), ticket);
  if (!started) {
    ByTime& waiting = unstarted_[call];
    if (!waiting.empty()) oldest_.erase({waiting.begin()->first.first, call});
    waiting.emplace(std::pair(sequence.times.submitted, ticket.number), ticket);
    oldest_.emplace(waiting.begin()->first.first, call);
  }
  if (!sequence.key.empty()) keys_[sequence.key].emplace(ticket.number, ticket);
  if (sequence.cancelled == nullptr) return;
  const auto [which, first] = cancellations_.try_emplace(sequence.cancelled.get());
  which->second.emplace(ticket.number, ticket);
  if (first) sequence.cancelled->AddListener(cancelled_);
}

void WaitingQueue::Unindex(const Sequence& sequence, const Ticket& ticket) {
  deadlines_.erase({sequence.deadline, ticket.number});
  const auto call = unstarted_.find(sequence.caller.call);
  if (call != unstarted_.end()) {
    ByTime& waiting = call->second;
    oldest_.erase({waiting.begin()->first.first, call->first});
    waiting.erase({sequence.times.submitted, ticket.number});
    if (waiting.empty()) {
      unstarted_.erase(call);
    } else {
      oldest_.emplace(waiting.begin()->first.first, call->first);
    }
  }
  if (const auto identical = keys_.find(sequence.key); identical != keys_.end()) {
    identical->second.erase(ticket.number);
    if (identical->second.empty()) keys_.erase(identical);
  }
  const auto cancellation = cancellations_.find(sequence.cancelled.get());
  if (cancellation == cancellations_.end()) return;
  cancellation->second.erase(ticket.number);
  if (cancellation->second.empty()) cancellations_.erase(cancellation);
}

void WaitingQueue::MarkStarted(uint64_t call) {
  const auto waiting = unstarted_.find(call);
  if (waiting == unstarted_.end()) return;
  oldest_.erase({waiting->second.begin()->first.first, call});
  unstarted_.erase(waiting);
}

std::unique_ptr<Sequence> WaitingQueue::Serve(const Ticket& ticket) {
  Unindex(at(ticket), ticket);
  MarkStarted(at(ticket).caller.call);
  return queue_.Serve(ticket);
}

std::unique_ptr<Sequence> WaitingQueue::Drop(const Ticket& ticket) {
  Unindex(at(ticket), ticket);
  return queue_.Drop(ticket);
}

WaitingQueue::Sequences WaitingQueue::TakeExpired(absl::Time now) {
  Sequences taken;
  while (!deadlines_.empty() && deadlines_.begin()->first.first <= now) {
    ++examined_;
    const Ticket ticket = deadlines_.begin()->second;
    taken.push_back(Drop(ticket));
  }
  return taken;
}

WaitingQueue::Sequences WaitingQueue::TakeCancelled() {
  Sequences taken;
  for (const Cancellation* cancellation : cancelled_->Take()) {
    const auto which = cancellations_.find(cancellation);
    // A newer Cancellation may live at the address of a cancelled one.
    if (which == cancellations_.end() || !which->first->cancelled()) continue;
    const std::map<uint64_t, Ticket> tickets = which->second;
    for (const auto& [number, ticket] : tickets) {
      ++examined_;
      taken.push_back(Drop(ticket));
    }
  }
  return taken;
}

WaitingQueue::Sequences WaitingQueue::TakeSubmittedBefore(
    absl::Time time, absl::FunctionRef<bool(const Sequence&)> keep) {
  Sequences taken;
  for (auto next = oldest_.begin(); next != oldest_.end() && next->first < time;) {
    ++examined_;
    const Ticket ticket = unstarted_.at(next->second).begin()->second;
    if (keep(at(ticket))) {
      ++next;
      continue;
    }
    const auto key = *next;
    taken.push_back(Drop(ticket));
    next = oldest_.lower_bound(key);
  }
  return taken;
}

WaitingQueue::Sequences WaitingQueue::TakeIdentical(const std::string& key) {
  Sequences taken;
  const auto identical = keys_.find(key);
  if (identical == keys_.end()) return taken;
  const std::map<uint64_t, Ticket> tickets = identical->second;
  for (const auto& [number, ticket] : tickets) {
    ++examined_;
    MarkStarted(ticket.call);
    taken.push_back(Drop(ticket));
  }
  return taken;
}

WaitingQueue::Sequences WaitingQueue::TakeAll() {
  Sequences taken;
  taken.reserve(queue_.size());
  while (!queue_.empty()) taken.push_back(queue_.ServeNext());
  deadlines_.clear();
  unstarted_.clear();
  oldest_.clear();
  cancellations_.clear();
  keys_.clear();
  return taken;
}

}  // namespace linnet::server
