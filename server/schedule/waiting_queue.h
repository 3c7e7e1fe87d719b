#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/schedule/cancellation.h"
#include "server/schedule/fair_queue.h"
#include "server/schedule/sequence.h"

namespace linnet::server {

// The sequences that wait for rows: in the order of FairQueue, and indexed by what ends a wait
// early (deadlines, cancels, shedding), so that a step looks only at those that it takes out and
// never at all that wait. Plain and deterministic. Not thread-safe.
class WaitingQueue {
 public:
  using Queue = FairQueue<std::unique_ptr<Sequence>>;
  using Ticket = Queue::Ticket;
  using Sequences = std::vector<std::unique_ptr<Sequence>>;

  // `started`: some sequence of its call runs or ran.
  void Push(std::unique_ptr<Sequence> sequence, bool started);
  // Takes one out to run it; what else of its call waits is not shed from then on.
  std::unique_ptr<Sequence> Serve(const Ticket& ticket);
  std::unique_ptr<Sequence> Drop(const Ticket& ticket);

  // Take out, oldest first: those whose deadline is not after `now`; those that were cancelled;
  // those submitted before `time`, of calls that have not started.
  Sequences TakeExpired(absl::Time now);
  Sequences TakeCancelled();
  Sequences TakeSubmittedBefore(absl::Time time);
  Sequences TakeAll();

  // Some call waits that has not started.
  bool any_unstarted() const { return !unstarted_.empty(); }
  Queue::Cursor cursor() const { return Queue::Cursor(queue_); }
  Sequence& at(const Ticket& ticket) { return *queue_.item(ticket); }
  bool empty() const { return queue_.empty(); }
  size_t size() const { return queue_.size(); }
  // How many sequences were looked at so far to find what is to be taken out.
  int64_t examined() const { return examined_; }

 private:
  using ByTime = std::map<std::pair<absl::Time, uint64_t>, Ticket>;  // with the ticket's number

  void Unindex(const Sequence& sequence, const Ticket& ticket);
  void Started(uint64_t call);

  Queue queue_;
  ByTime deadlines_;                                  // of those that have one
  std::map<uint64_t, ByTime> unstarted_;              // by call, by time of submission
  std::set<std::pair<absl::Time, uint64_t>> oldest_;  // the first of each of these, and its call
  std::map<const Cancellation*, std::map<uint64_t, Ticket>> cancellations_;
  std::shared_ptr<CancelledCalls> cancelled_ = std::make_shared<CancelledCalls>();
  int64_t examined_ = 0;
};

}  // namespace linnet::server
