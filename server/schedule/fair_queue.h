#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "server/schedule/caller.h"
#include "server/schedule/sequence.h"

namespace linnet::server {

// The sequences that wait, in an order that shares the engine fairly: however many sequences a
// client sends, over any time in which two of them always wait, the work of each that is seated is
// in proportion to their weights, up to one sequence of each. Those of one client and urgency stay
// in order of arrival. Who comes back after a pause has saved nothing up and owes nothing.
//
// Start-time fair queuing (Goyal, Vin and Cheng 1996, section 2): a sequence begins, in virtual
// time, where the one before it in its flow ends, but not before the present; it takes its work
// over its weight; the earliest beginning is served first, and is the present from then on. The
// present moves on with the work served as well, so that a flow among others that are always new
// gets at least half of its share.
//
// Plain and deterministic. Not thread-safe.
class FairQueue {
 public:
  // Virtual beginning, and a number that breaks ties by arrival.
  using Key = std::pair<double, uint64_t>;
  using Sequences = std::map<Key, std::unique_ptr<Sequence>>;
  using Iterator = Sequences::iterator;

  void Push(std::unique_ptr<Sequence> sequence);

  // In the order in which they are to be seated.
  Iterator begin() { return sequences_.begin(); }
  Iterator end() { return sequences_.end(); }
  Sequences::const_iterator begin() const { return sequences_.begin(); }
  Sequences::const_iterator end() const { return sequences_.end(); }
  bool empty() const { return sequences_.empty(); }
  size_t size() const { return sequences_.size(); }

  // Takes one out because it is served.
  std::unique_ptr<Sequence> Serve(Iterator which);
  // Takes those out that are not wanted any more, in order. They cost nothing: what stands behind
  // them in their flow moves up.
  std::vector<std::unique_ptr<Sequence>> DropIf(absl::FunctionRef<bool(const Sequence&)> unwanted);
  // Takes all out.
  Sequences DropAll();

 private:
  struct Line {
    double end = 0;  // virtual, of its last sequence
    int waiting = 0;
  };

  std::unique_ptr<Sequence> Take(Iterator which);
  void OneLess(const Sequence& sequence);  // waits in its line

  double present_ = 0;
  double waiting_weight_ = 0;  // of the flows that wait: whole numbers, so without rounding
  double served_ = 0;          // last, over waiting_weight_
  uint64_t next_number_ = 0;
  std::map<Flow, Line> lines_;
  Sequences sequences_;
};

}  // namespace linnet::server
