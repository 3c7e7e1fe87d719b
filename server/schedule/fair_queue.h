#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include "server/schedule/caller.h"

namespace linnet::server {

// Items that wait, in an order that shares what serves them fairly: however many items a client
// sends, over any time in which two clients always wait, the work of each that is served is in
// proportion to their weights, up to one item of each. Items of one flow are served in order of
// arrival. A flow that comes back after a pause has saved nothing up and owes nothing.
//
// Start-time fair queueing (Goyal, Vin and Cheng 1996, section 2): an item's start tag is the
// finish tag of the item before it in its flow, but not less than the virtual time of its arrival;
// its finish tag adds its work over the weight of its flow; the lowest start tag is served first,
// and is the virtual time from then on. A start tag is computed when an item becomes the first of
// its flow, so that an item that is dropped costs the others nothing, and every operation takes a
// time that is logarithmic in what waits.
//
// Plain and deterministic. Not thread-safe.
template <typename Item>
class FairQueue {
  struct Entry {
    Item item;
    double work = 0;
    double arrived = 0;  // virtual time
  };
  using Items = std::map<uint64_t, Entry>;  // of one call of a flow, by number of arrival
  using Calls = std::map<uint64_t, Items>;
  struct CallItems {
    uint64_t call = 0;
    Items* items = nullptr;
  };
  using Order = std::map<uint64_t, CallItems>;  // by the number of a call's first item
  using Key = std::pair<double, uint64_t>;      // start tag, and the number, which breaks ties
  struct FlowState {
    double weight = 1;
    double finish = 0;  // tag of the item that was served last
    double work = 0;    // that waits
    Calls calls;
    Order order;
    Key head;  // in heads_, while something waits
  };
  using Flows = std::map<Flow, FlowState>;
  using Heads = std::map<Key, typename Flows::iterator>;

 public:
  // Where an item stands; valid as long as it waits.
  struct Ticket {
    uint64_t number = 0;  // in order of arrival
    uint64_t call = 0;
    typename Flows::iterator flow = {};
  };

  Ticket Push(const Flow& flow, uint64_t call, double work, Item item) {
    Sweep();
    const auto [which, first] = flows_.try_emplace(flow);
    FlowState& state = which->second;
    if (first) state.weight = WeightOf(flow.priority);
    const uint64_t number = next_number_++;
    Unlink(state);
    if (state.order.empty()) weight_ += state.weight;
    Items& items = state.calls[call];
    if (items.empty()) state.order.emplace(number, CallItems{call, &items});
    items.emplace(number, Entry{std::move(item), work, virtual_time_});
    state.work += work;
    work_ += work;
    ++size_;
    Link(which);
    return {number, call, which};
  }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  double work() const { return work_; }  // of all that wait
  const Item& item(const Ticket& ticket) const {
    return ticket.flow->second.calls.at(ticket.call).at(ticket.number).item;
  }
  Item& item(const Ticket& ticket) {
    return ticket.flow->second.calls.at(ticket.call).at(ticket.number).item;
  }

  // Takes an item out because it is served.
  Item Serve(const Ticket& ticket) {
    FlowState& state = ticket.flow->second;
    const Entry& entry = state.calls.at(ticket.call).at(ticket.number);
    const double start = std::max(entry.arrived, state.finish);
    // New flows begin at the virtual time. If that stood still while they are served, a flow that was
    // served before would wait as long as new ones come: it moves on by the work served, shared
    // among all that waited, but not past the next start tag.
    if (const auto later = heads_.upper_bound({virtual_time_, ~uint64_t{0}}); later != heads_.end())
      virtual_time_ = std::min(later->first.first, virtual_time_ + served_);
    served_ = entry.work / weight_;
    // An item may be served before others that cannot be: time does not run backwards.
    virtual_time_ = std::max(virtual_time_, start);
    Unlink(state);
    state.finish = start + entry.work / state.weight;
    return Remove(ticket);
  }
  // Takes out the item whose turn it is.
  Item ServeNext() {
    const auto [key, flow] = *heads_.begin();
    return Serve({key.second, flow->second.order.begin()->second.call, flow});
  }
  // Takes an item out because it is not wanted any more.
  Item Drop(const Ticket& ticket) {
    Unlink(ticket.flow->second);
    return Remove(ticket);
  }
  void Clear() { *this = FairQueue(); }

  // An upper bound on the work that is served before so much more of the flow, this included.
  double WorkUntil(const Flow& flow, double work) const {
    const auto which = flows_.find(flow);
    const double own = which == flows_.end() ? 0 : which->second.work;
    const double weight = WeightOf(flow.priority);
    const double others = weight_ - (own > 0 ? weight : 0);
    return own + work + std::min(work_ - own, (own + work) * others / weight);
  }

  // Walks items in the order in which they would be served; the queue must not change meanwhile.
  class Cursor {
   public:
    explicit Cursor(const FairQueue& queue) : queue_(queue), next_head_(queue.heads_.begin()) {
      Find();
    }
    bool done() const { return done_; }
    Ticket ticket() const { return {walk_.at->first, walk_.call, walk_.flow}; }
    const Item& operator*() const { return walk_.at->second.item; }

    // Goes on as if the item were served.
    void Take() {
      const double start = std::max(walk_.at->second.arrived, walk_.finish);
      walk_.finish = start + walk_.at->second.work / walk_.flow->second.weight;
      if (const auto next = std::next(walk_.at); next != walk_.items->end())
        walk_.begun.emplace(next->first, CallItems{walk_.call, walk_.items});
      Leave();
    }
    // Goes on without what is left of the item's call.
    void SkipCall() { Leave(); }

   private:
    // A flow that is walked. Its calls are looked at as their turns come, however many it has.
    struct Walk {
      typename Flows::iterator flow = {};
      double finish = 0;
      typename Order::const_iterator next_call = {};
      Order begun = {};  // calls of which some was taken, by the number of the next item
      uint64_t call = 0;
      Items* items = nullptr;  // of that call
      typename Items::const_iterator at = {};
    };

    // Moves the walk to the flow's next item. False if there is none.
    static bool Next(Walk& walk) {
      const Order& order = walk.flow->second.order;
      const bool fresh = walk.next_call != order.end() &&
                         (walk.begun.empty() || walk.next_call->first < walk.begun.begin()->first);
      if (!fresh && walk.begun.empty()) return false;
      const auto which = fresh ? walk.next_call : walk.begun.cbegin();
      walk.call = which->second.call;
      walk.items = which->second.items;
      walk.at = walk.items->find(which->first);
      if (fresh) {
        ++walk.next_call;
      } else {
        walk.begun.erase(which);
      }
      return true;
    }
    void Leave() {
      if (Next(walk_)) {
        const Key key = {std::max(walk_.at->second.arrived, walk_.finish), walk_.at->first};
        walks_.emplace(key, std::move(walk_));
      }
      Find();
    }
    void Find() {
      const bool fresh = next_head_ != queue_.heads_.end() &&
                         (walks_.empty() || next_head_->first < walks_.begin()->first);
      done_ = !fresh && walks_.empty();
      if (done_) return;
      if (fresh) {
        const typename Flows::iterator flow = (next_head_++)->second;
        walk_ = {
            .flow = flow, .finish = flow->second.finish, .next_call = flow->second.order.begin()};
        Next(walk_);
      } else {
        walk_ = std::move(walks_.extract(walks_.begin()).mapped());
      }
    }

    const FairQueue& queue_;
    typename Heads::const_iterator next_head_;
    Walk walk_;
    std::map<Key, Walk> walks_;  // flows that were walked and have more
    bool done_ = false;
  };

 private:
  void Unlink(FlowState& state) {
    if (!state.order.empty()) heads_.erase(state.head);
  }
  void Link(typename Flows::iterator flow) {
    FlowState& state = flow->second;
    if (state.order.empty()) return;
    const auto& [number, call] = *state.order.begin();
    state.head = {std::max(call.items->begin()->second.arrived, state.finish), number};
    heads_.emplace(state.head, flow);
  }
  // The flow is unlinked, and linked again.
  Item Remove(const Ticket& ticket) {
    FlowState& state = ticket.flow->second;
    const auto call = state.calls.find(ticket.call);
    Items& items = call->second;
    const auto entry = items.find(ticket.number);
    Item item = std::move(entry->second.item);
    state.work -= entry->second.work;
    work_ -= entry->second.work;
    --size_;
    const uint64_t first = items.begin()->first;
    items.erase(entry);
    if (items.empty()) {
      state.order.erase(first);
      state.calls.erase(call);
    } else if (items.begin()->first != first) {
      state.order.erase(first);
      state.order.emplace(items.begin()->first, CallItems{ticket.call, &items});
    }
    if (state.order.empty()) weight_ -= state.weight;
    Link(ticket.flow);
    if (size_ == 0) Reset();
    return item;
  }
  // Nobody is left to be fair to.
  void Reset() {
    flows_.clear();
    heads_.clear();
    virtual_time_ = served_ = work_ = weight_ = 0;
    sweep_at_ = 16;
  }
  // A flow of which nothing waits is kept while it owes something, and no longer.
  void Sweep() {
    if (flows_.size() < sweep_at_) return;
    std::erase_if(flows_, [this](const auto& flow) {
      return flow.second.order.empty() && flow.second.finish <= virtual_time_;
    });
    sweep_at_ = 2 * flows_.size() + 16;
  }

  double virtual_time_ = 0;
  double served_ = 0;  // by the last turn, over the weight of all that waited
  uint64_t next_number_ = 0;
  double work_ = 0;    // that waits
  double weight_ = 0;  // of the flows that wait
  size_t size_ = 0;
  size_t sweep_at_ = 16;
  Flows flows_;
  Heads heads_;  // of the flows that wait
};

}  // namespace linnet::server
