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

// A weighted fair queue: clients get service in proportion to their weights, and a client that
// sends more items gets no more. While two clients both have items waiting, the work served of each
// is in proportion to their weights, to within one item. The service of a client is divided equally
// between its flows (Flow::id), so a client gains nothing by using more ids. Items of one flow are
// served in order of arrival. A flow or client that returns after a pause has neither credit nor
// debt.
//
// Source: hierarchical start-time fair queueing (Goyal, Vin and Cheng 1996, sections 2 and 4).
//   start tag    max(finish tag of the previous item of the flow, virtual time at arrival)
//   finish tag   start tag + work / weight of the flow
//   service      the lowest start tag first; the virtual time is the start tag of the served item
// These rules apply to the clients, and within each client to its flows, with tags and a virtual
// time of their own. A start tag is computed when an item becomes the first of its flow, so a
// dropped item costs the others nothing. Every operation is logarithmic in the number of items.
// Push changes nothing if there is no memory; Serve and Drop need none.
//
// Deterministic. Not thread-safe.
template <typename Item>
class FairQueue {
  struct Entry {
    Item item;
    double work = 0;
    double arrived = 0;            // virtual time of the clients
    double arrived_in_client = 0;  // virtual time of the client's flows
  };
  using Items = std::map<uint64_t, Entry>;  // of one call of a flow, by arrival number
  using Calls = std::map<uint64_t, Items>;
  struct CallItems {
    uint64_t call = 0;
    Items* items = nullptr;
  };
  using Order = std::map<uint64_t, CallItems>;  // by the number of a call's first item
  using Key = std::pair<double, uint64_t>;      // start tag, and the number, which breaks ties

  // A client, or a flow of a client.
  struct Node {
    double weight = 1;
    double finish = 0;  // finish tag of the item that was served last
    double work = 0;    // sum over the waiting items
    Key head = {};      // its key in Level::heads, while it is linked
    bool linked = false;
  };
  // Nodes that share one service: all clients, or the flows of one client.
  template <typename Child>
  struct Level {
    double time = 0;    // virtual time
    double served = 0;  // work of the last served item / weight of all waiting nodes
    double weight = 0;  // sum over the waiting nodes
    using Heads = std::map<Key, Child*>;
    Heads heads;

    // Allocates the child's entry of `heads`, so that Link needs no memory.
    void Prepare(Child& child) {
      if (child.linked || !child.entry.empty()) return;
      Heads one;
      one.emplace(Key{}, &child);
      child.entry = one.extract(one.begin());
    }
    // The child is prepared, and not linked.
    void Link(Child& child, double arrived, uint64_t number) {
      child.entry.key() = child.head = {std::max(arrived, child.finish), number};
      heads.insert(std::move(child.entry));
      child.linked = true;
      weight += child.weight;
    }
    void Unlink(Child& child) {
      if (!std::exchange(child.linked, false)) return;
      child.entry = heads.extract(child.head);
      weight -= child.weight;
    }
    void Serve(Child& child, double arrived, double work) {
      const double start = std::max(arrived, child.finish);
      // New nodes start at the virtual time. If it did not advance while they are served, a steady
      // stream of new nodes would starve a node that was served before. So it advances by the work
      // served over the weight of all waiting nodes, but not past the next start tag.
      if (const auto later = heads.upper_bound({time, ~uint64_t{0}}); later != heads.end())
        time = std::min(later->first.first, time + served);
      served = work / weight;
      // Items may be served out of order, when those before them do not fit: the virtual time never
      // decreases.
      time = std::max(time, start);
      child.finish = start + work / child.weight;
    }
  };
  struct FlowState : Node {
    typename Level<FlowState>::Heads::node_type entry;  // while it is not linked
    Calls calls;
    Order order;
    bool waits() const { return !order.empty(); }
    const typename Items::value_type& first() const {
      return *order.begin()->second.items->begin();
    }
  };
  struct ClientState : Node {
    typename Level<ClientState>::Heads::node_type entry;  // while it is not linked
    std::map<std::string, FlowState> flows;               // by id
    Level<FlowState> level;
    size_t sweep_at = 16;
    bool waits() const { return !level.heads.empty(); }
  };

 public:
  // Handle of a waiting item; valid until the item is served or dropped.
  struct Ticket {
    uint64_t number = 0;  // in order of arrival
    uint64_t call = 0;
    ClientState* client = nullptr;
    FlowState* flow = nullptr;
  };

  Ticket Push(const Flow& flow, uint64_t call, double work, Item item) {
    Sweep(clients_, level_.time, sweep_at_);
    ClientState& client = clients_[{flow.client, flow.priority}];
    client.weight = PriorityWeight(flow.priority);
    Sweep(client.flows, client.level.time, client.sweep_at);
    FlowState& state = client.flows[flow.id];
    const uint64_t number = next_number_++;
    level_.Prepare(client);
    client.level.Prepare(state);
    Items& items = state.calls[call];
    Items one;
    one.emplace(number, Entry{std::move(item), work, level_.time, client.level.time});
    if (items.empty()) state.order.emplace(number, CallItems{call, &items});
    // Nothing below needs memory: if there is none, nothing has changed.
    Unlink(client, state);
    items.insert(one.extract(one.begin()));
    state.work += work;
    client.work += work;
    work_ += work;
    ++size_;
    Link(client, state);
    return {number, call, &client, &state};
  }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  double work() const { return work_; }  // sum over all waiting items
  const Item& item(const Ticket& ticket) const {
    return ticket.flow->calls.at(ticket.call).at(ticket.number).item;
  }
  Item& item(const Ticket& ticket) {
    return ticket.flow->calls.at(ticket.call).at(ticket.number).item;
  }

  // Removes an item and charges its work to its flow and client.
  Item Serve(const Ticket& ticket) {
    const Entry& entry = ticket.flow->calls.at(ticket.call).at(ticket.number);
    level_.Serve(*ticket.client, entry.arrived, entry.work);
    ticket.client->level.Serve(*ticket.flow, entry.arrived_in_client, entry.work);
    return Drop(ticket);
  }
  // Serves the next item. The queue must not be empty.
  Item ServeNext() {
    ClientState& client = *level_.heads.begin()->second;
    FlowState& flow = *client.level.heads.begin()->second;
    return Serve({flow.first().first, flow.order.begin()->second.call, &client, &flow});
  }
  // Removes an item without a charge: it was cancelled, has expired or is shed.
  Item Drop(const Ticket& ticket) {
    ClientState& client = *ticket.client;
    FlowState& flow = *ticket.flow;
    Unlink(client, flow);
    Item item = Remove(flow, ticket, client);
    Link(client, flow);
    // With no item waiting, tags of the past have no meaning.
    if (!client.waits()) {
      client.flows.clear();
      client.level = {};
      client.work = 0;  // exactly, without rounding errors
    }
    if (size_ == 0) Clear();
    return item;
  }
  void Clear() {
    const uint64_t next_number = next_number_;
    *this = FairQueue();
    next_number_ = next_number;
  }

  // Upper bound on the total work that is served until another `work` of the flow is served, with
  // that work included; exact to within one item of each other flow.
  double WorkUntil(const Flow& flow, double work) const {
    const auto which = clients_.find({flow.client, flow.priority});
    if (which == clients_.end())
      return Shared(work, work_, level_.weight / PriorityWeight(flow.priority));
    const ClientState& client = which->second;
    const auto own = client.flows.find(flow.id);
    const double before = own == client.flows.end() ? 0 : own->second.work;
    const bool waits = own != client.flows.end() && own->second.waits();
    const double of_client =
        Shared(before + work, client.work - before, client.level.weight - (waits ? 1 : 0));
    const double others = level_.weight - (client.waits() ? client.weight : 0);
    return Shared(of_client, work_ - client.work, others / client.weight);
  }

  // Iterates over the items in the order of service. The queue must not change meanwhile.
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

    // Moves to the next item, as if this one were served.
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
    // Moves on and skips all further items of this item's call.
    void SkipCall() { clients_.Leave(); }
    // The same for its client and priority.
    void SkipClient() { clients_.Find(); }

   private:
    // Iterates over the nodes of a level in the order of their next items. Merges the nodes that
    // were not visited yet (next) with those that were and have more items (begun).
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
    // Iterates over the items of a flow. Merges its calls lazily: a call is read when its first
    // item is next.
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
      Order begun = {};  // calls with taken items and more, by the number of the next item
      uint64_t call = 0;
      Items* items = nullptr;  // of the current call
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
  // Total work served until `own` is, if the others have `waiting` work and `weights` times the
  // weight.
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
  // The flow and the client are unlinked.
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
      auto moved = flow.order.extract(first);
      moved.key() = items.begin()->first;
      flow.order.insert(std::move(moved));
    }
    return item;
  }
  // Erases nodes without items whose finish tag has passed. A later finish tag is kept: a returning
  // node must not start before it.
  template <typename Nodes>
  static void Sweep(Nodes& nodes, double time, size_t& sweep_at) {
    if (nodes.size() < sweep_at) return;
    std::erase_if(nodes, [time](const auto& node) {
      return !node.second.waits() && node.second.finish <= time;
    });
    sweep_at = 2 * nodes.size() + 16;
  }

  uint64_t next_number_ = 1;
  double work_ = 0;  // sum over all waiting items
  size_t size_ = 0;
  size_t sweep_at_ = 16;
  std::map<std::pair<std::string, Priority>, ClientState> clients_;
  Level<ClientState> level_;
};

}  // namespace linnet::server
