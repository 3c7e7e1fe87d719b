#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "server/base/caller.h"

namespace linnet::server {

// Items that wait, in an order that shares what serves them fairly: however many items a client
// sends, over any time in which two clients always wait, the work of each that is served is in
// proportion to their weights, up to one item of each. What a client gets is shared in the same way
// by its flows, which its calls' ids tell apart, each with the same weight: however many ids a
// client sends, it gets no more. Items of one flow are served in order of arrival. A flow or client
// that comes back after a pause has saved nothing up and owes nothing.
//
// Hierarchical start-time fair queueing (Goyal, Vin and Cheng 1996, sections 2 and 4): an item's
// start tag is the finish tag of the item before it in its flow, but not less than the virtual time
// of its arrival; its finish tag adds its work over the weight of its flow; the lowest start tag is
// served first, and is the virtual time from then on. That holds for the clients, and within each
// for its flows, which have tags and a virtual time of their own. A start tag is computed when an
// item becomes the first of its flow, so that an item that is dropped costs the others nothing, and
// every operation takes a time that is logarithmic in what waits.
//
// Plain and deterministic. Not thread-safe.
template <typename Item>
class FairQueue {
  struct Entry {
    Item item;
    double work = 0;
    double arrived = 0;            // virtual time of the clients
    double arrived_in_client = 0;  // virtual time of the client's flows
  };
  using Items = std::map<uint64_t, Entry>;  // of one call of a flow, by number of arrival
  using Calls = std::map<uint64_t, Items>;
  struct CallItems {
    uint64_t call = 0;
    Items* items = nullptr;
  };
  using Order = std::map<uint64_t, CallItems>;  // by the number of a call's first item
  using Key = std::pair<double, uint64_t>;      // start tag, and the number, which breaks ties

  // A client among the clients, or a flow among those of its client.
  struct Node {
    double weight = 1;
    double finish = 0;  // tag of the item that was served last
    double work = 0;    // that waits
    Key head = {};      // in Level::heads, while something waits
  };
  // Nodes that share what serves them.
  template <typename Child>
  struct Level {
    double time = 0;    // virtual
    double served = 0;  // by the last turn, over the weight of all that waited
    double weight = 0;  // of those that wait
    std::map<Key, Child*> heads;

    void Link(Child& child, double arrived, uint64_t number) {
      child.head = {std::max(arrived, child.finish), number};
      heads.emplace(child.head, &child);
      weight += child.weight;
    }
    void Unlink(Child& child) {
      if (heads.erase(child.head) > 0) weight -= child.weight;
    }
    void Serve(Child& child, double arrived, double work) {
      const double start = std::max(arrived, child.finish);
      // New nodes begin at the virtual time. If that stood still while they are served, a node that
      // was served before would wait as long as new ones come: it moves on by the work served,
      // shared among all that waited, but not past the next start tag.
      if (const auto later = heads.upper_bound({time, ~uint64_t{0}}); later != heads.end())
        time = std::min(later->first.first, time + served);
      served = work / weight;
      // An item may be served before others that cannot be: time does not run backwards.
      time = std::max(time, start);
      child.finish = start + work / child.weight;
    }
  };
  struct FlowState : Node {
    Calls calls;
    Order order;
    bool waits() const { return !order.empty(); }
    const typename Items::value_type& first() const {
      return *order.begin()->second.items->begin();
    }
  };
  struct ClientState : Node {
    std::map<std::string, FlowState> flows;  // by id
    Level<FlowState> level;
    size_t sweep_at = 16;
    bool waits() const { return !level.heads.empty(); }
  };

 public:
  // Where an item stands; valid as long as it waits.
  struct Ticket {
    uint64_t number = 0;  // in order of arrival
    uint64_t call = 0;
    ClientState* client = nullptr;
    FlowState* flow = nullptr;
  };

  Ticket Push(const Flow& flow, uint64_t call, double work, Item item) {
    Sweep(clients_, level_.time, sweep_at_);
    ClientState& client = clients_[{flow.client, flow.priority}];
    client.weight = WeightOf(flow.priority);
    Sweep(client.flows, client.level.time, client.sweep_at);
    FlowState& state = client.flows[flow.id];
    const uint64_t number = next_number_++;
    Unlink(client, state);
    Items& items = state.calls[call];
    if (items.empty()) state.order.emplace(number, CallItems{call, &items});
    items.emplace(number, Entry{std::move(item), work, level_.time, client.level.time});
    state.work += work;
    client.work += work;
    work_ += work;
    ++size_;
    Link(client, state);
    return {number, call, &client, &state};
  }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  double work() const { return work_; }  // of all that wait
  const Item& item(const Ticket& ticket) const {
    return ticket.flow->calls.at(ticket.call).at(ticket.number).item;
  }
  Item& item(const Ticket& ticket) {
    return ticket.flow->calls.at(ticket.call).at(ticket.number).item;
  }

  // Takes an item out because it is served.
  Item Serve(const Ticket& ticket) {
    const Entry& entry = ticket.flow->calls.at(ticket.call).at(ticket.number);
    level_.Serve(*ticket.client, entry.arrived, entry.work);
    ticket.client->level.Serve(*ticket.flow, entry.arrived_in_client, entry.work);
    return Drop(ticket);
  }
  // Takes out the item whose turn it is.
  Item ServeNext() {
    ClientState& client = *level_.heads.begin()->second;
    FlowState& flow = *client.level.heads.begin()->second;
    return Serve({flow.first().first, flow.order.begin()->second.call, &client, &flow});
  }
  // Takes an item out because it is not wanted any more.
  Item Drop(const Ticket& ticket) {
    ClientState& client = *ticket.client;
    FlowState& flow = *ticket.flow;
    Unlink(client, flow);
    Item item = Remove(flow, ticket, client);
    Link(client, flow);
    // Nobody is left to be fair to.
    if (!client.waits()) {
      client.flows.clear();
      client.level = {};
      client.work = 0;  // without what rounding leaves
    }
    if (size_ == 0) Clear();
    return item;
  }
  void Clear() {
    const uint64_t next_number = next_number_;
    *this = FairQueue();
    next_number_ = next_number;
  }

  // An upper bound on the work that is served before so much more of the flow, this included, up to
  // one item of each other flow.
  double WorkUntil(const Flow& flow, double work) const {
    const auto which = clients_.find({flow.client, flow.priority});
    if (which == clients_.end())
      return Shared(work, work_, level_.weight / WeightOf(flow.priority));
    const ClientState& client = which->second;
    const auto own = client.flows.find(flow.id);
    const double before = own == client.flows.end() ? 0 : own->second.work;
    const bool waits = own != client.flows.end() && own->second.waits();
    const double of_client =
        Shared(before + work, client.work - before, client.level.weight - (waits ? 1 : 0));
    const double others = level_.weight - (client.waits() ? client.weight : 0);
    return Shared(of_client, work_ - client.work, others / client.weight);
  }

  // Walks items in the order in which they would be served; the queue must not change meanwhile.
  class Cursor {
   public:
    explicit Cursor(const FairQueue& queue) : clients_(queue.level_) {}
    bool done() const { return clients_.done; }
    Ticket ticket() const {
      const ClientWalk& client = clients_.walk;
      const FlowWalk& flow = client.flows.walk;
      return {flow.at->first, flow.call, client.node, flow.node};
    }
    const Item& operator*() const { return clients_.walk.flows.walk.at->second.item; }

    // Goes on as if the item were served.
    void Take() {
      ClientWalk& client = clients_.walk;
      FlowWalk& flow = client.flows.walk;
      const double work = flow.at->second.work;
      client.finish = client.key().first + work / client.node->weight;
      flow.finish = flow.key().first + work / flow.node->weight;
      if (const auto next = std::next(flow.at); next != flow.items->end())
        flow.begun.emplace(next->first, CallItems{flow.call, flow.items});
      clients_.Leave();
    }
    // Goes on without what is left of the item's call.
    void SkipCall() { clients_.Leave(); }

   private:
    // The nodes of a level in the order of their next items: those that were not walked yet, and
    // those that were and have more.
    template <typename Child, typename Walk>
    struct Walks {
      Walks() = default;
      explicit Walks(const Level<Child>& level)
          : next(level.heads.begin()), end(level.heads.end()) {
        Find();
      }
      void Leave() {
        if (walk.Next()) {
          const Key key = walk.key();
          begun.emplace(key, std::move(walk));
        }
        Find();
      }
      void Find() {
        const bool fresh = next != end && (begun.empty() || next->first < begun.begin()->first);
        done = !fresh && begun.empty();
        if (done) return;
        walk = fresh ? Walk((next++)->second) : std::move(begun.extract(begun.begin()).mapped());
      }

      typename std::map<Key, Child*>::const_iterator next = {}, end = {};
      std::map<Key, Walk> begun;
      Walk walk;
      bool done = true;
    };
    // Of a flow. Its calls are looked at as their turns come, however many it has.
    struct FlowWalk {
      FlowWalk() = default;
      explicit FlowWalk(FlowState* flow)
          : node(flow), finish(flow->finish), next_call(flow->order.begin()) {
        Next();
      }
      Key key() const { return {std::max(at->second.arrived_in_client, finish), at->first}; }
      // Moves to the flow's next item. False if there is none.
      bool Next() {
        const bool fresh = next_call != node->order.end() &&
                           (begun.empty() || next_call->first < begun.begin()->first);
        if (!fresh && begun.empty()) return false;
        const auto which = fresh ? next_call : begun.cbegin();
        call = which->second.call;
        items = which->second.items;
        at = items->find(which->first);
        if (fresh) {
          ++next_call;
        } else {
          begun.erase(which);
        }
        return true;
      }

      FlowState* node = nullptr;
      double finish = 0;
      typename Order::const_iterator next_call = {};
      Order begun = {};  // calls of which some was taken, by the number of the next item
      uint64_t call = 0;
      Items* items = nullptr;  // of that call
      typename Items::const_iterator at = {};
    };
    struct ClientWalk {
      ClientWalk() = default;
      explicit ClientWalk(ClientState* client)
          : node(client), finish(client->finish), flows(client->level) {}
      Key key() const {
        const auto& [number, entry] = *flows.walk.at;
        return {std::max(entry.arrived, finish), number};
      }
      bool Next() {
        flows.Leave();
        return !flows.done;
      }

      ClientState* node = nullptr;
      double finish = 0;
      Walks<FlowState, FlowWalk> flows;
    };

    Walks<ClientState, ClientWalk> clients_;
  };

 private:
  // Work that is served until `own` is, where others have `waiting` and so many times its weight.
  static double Shared(double own, double waiting, double weights) {
    return own + std::min(waiting, own * weights);
  }
  void Unlink(ClientState& client, FlowState& flow) {
    level_.Unlink(client);
    client.level.Unlink(flow);
  }
  void Link(ClientState& client, FlowState& flow) {
    if (flow.waits()) {
      const auto& [number, entry] = flow.first();
      client.level.Link(flow, entry.arrived_in_client, number);
    }
    if (client.waits()) {
      const auto& [number, entry] = client.level.heads.begin()->second->first();
      level_.Link(client, entry.arrived, number);
    }
  }
  // Both are unlinked.
  Item Remove(FlowState& flow, const Ticket& ticket, ClientState& client) {
    const auto call = flow.calls.find(ticket.call);
    Items& items = call->second;
    const auto entry = items.find(ticket.number);
    Item item = std::move(entry->second.item);
    for (double* waiting : {&flow.work, &client.work, &work_}) *waiting -= entry->second.work;
    --size_;
    const uint64_t first = items.begin()->first;
    items.erase(entry);
    if (items.empty()) {
      flow.order.erase(first);
      flow.calls.erase(call);
    } else if (items.begin()->first != first) {
      flow.order.erase(first);
      flow.order.emplace(items.begin()->first, CallItems{ticket.call, &items});
    }
    return item;
  }
  // A node of which nothing waits is kept while it owes something, and no longer.
  template <typename Nodes>
  static void Sweep(Nodes& nodes, double time, size_t& sweep_at) {
    if (nodes.size() < sweep_at) return;
    std::erase_if(nodes, [time](const auto& node) {
      return !node.second.waits() && node.second.finish <= time;
    });
    sweep_at = 2 * nodes.size() + 16;
  }

  uint64_t next_number_ = 1;  // 0 is no item's: a node that never waited has it for its head
  double work_ = 0;           // that waits
  size_t size_ = 0;
  size_t sweep_at_ = 16;
  std::map<std::pair<std::string, Priority>, ClientState> clients_;
  Level<ClientState> level_;
};

}  // namespace linnet::server
