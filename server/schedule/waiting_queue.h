#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "server/schedule/cancellation.h"
#include "server/schedule/fair_queue.h"
#include "server/schedule/sequence.h"

namespace linnet::server {

// The waiting sequences, in the order of FairQueue, with indexes by deadline, cancellation, key and
// submission time. A step therefore inspects only the sequences that it removes, not the whole
// queue. Deterministic. Not thread-safe: the batcher owns it.
class WaitingQueue {
 public:
  using Queue = FairQueue<std::unique_ptr<Sequence>>;
  using Ticket = Queue::Ticket;
  using Sequences = std::vector<std::unique_ptr<Sequence>>;

  // `started`: a sequence of the same call runs or ran.
  void Push(std::unique_ptr<Sequence> sequence, bool started);
  // Removes a sequence to run it. The other waiting sequences of its call can no longer be shed.
  std::unique_ptr<Sequence> Serve(const Ticket& ticket);
  std::unique_ptr<Sequence> Drop(const Ticket& ticket);

  // Remove and return sequences, oldest first.
  Sequences TakeExpired(absl::Time now);  // those whose deadline is not after `now`
  Sequences TakeCancelled();
  // Only those of calls that have not started. `keep`: leaves this one and the rest of its call.
  Sequences TakeSubmittedBefore(absl::Time time, absl::FunctionRef<bool(const Sequence&)> keep);
  Sequences TakeAll();
  // Those with this key, which must not be empty, to share a run: no flow is charged for them. The
  // other waiting sequences of their calls can no longer be shed.
  Sequences TakeIdentical(const std::string& key);

  // The other waiting sequences of this call can no longer be shed.
  void MarkStarted(uint64_t call);

  // True if a call that has not started waits.
  bool any_unstarted() const { return !unstarted_.empty(); }
  Queue::Cursor cursor() const { return Queue::Cursor(queue_); }
  Sequence& at(const Ticket& ticket) { return *queue_.item(ticket); }
  bool empty() const { return queue_.empty(); }
  size_t size() const { return queue_.size(); }
  // Number of sequences that the Take functions have inspected so far.
  int64_t examined() const { return examined_; }

 private:
  using ByTime = std::map<std::pair<absl::Time, uint64_t>, Ticket>;  // key: time, ticket number

  void Unindex(const Sequence& sequence, const Ticket& ticket);

  Queue queue_;
  ByTime deadlines_;                                  // of the sequences that have a deadline
  std::map<uint64_t, ByTime> unstarted_;              // by call, then by time of submission
  std::set<std::pair<absl::Time, uint64_t>> oldest_;  // first time of each of these, and its call
  std::map<const Cancellation*, std::map<uint64_t, Ticket>> cancellations_;
  std::map<std::string, std::map<uint64_t, Ticket>> keys_;
  std::shared_ptr<CancelledCalls> cancelled_ = std::make_shared<CancelledCalls>();
  int64_t examined_ = 0;
};

}  // namespace linnet::server
