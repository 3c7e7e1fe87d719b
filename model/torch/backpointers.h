#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace linnet::model {

// Where the last inputs of each hypothesis lie.
//
// A decoder layer keeps the inputs of the last K steps in window[step mod K][lane]. Hypothesis i of
// a sequence writes to the sequence's lane i at every step, whoever its parent was; so when a beam
// is reordered no tensor moves, only this table does, and all layers share it: of(lane)[j] is the
// lane in which the input of j steps ago lies. No entry needs clearing when a lane is taken over: a
// step reads no further back than its hypothesis is old, and entries beyond that are any lanes.
class Backpointers {
 public:
  // `reach`: inputs that the widest layer looks at, the present one counted.
  Backpointers(int slots, int reach);

  std::span<const int32_t> of(int slot) const {
    return {&table_[int64_t{slot} * reach_], static_cast<size_t>(reach_)};
  }
  int reach() const { return reach_; }

  // A sequence starts on these lanes.
  void Start(std::span<const int32_t> slots);
  // A step was made: hypothesis i, whose next input goes to lanes[i], descends from hypothesis
  // parents[i], that is from what of(lanes[parents[i]]) was until now.
  void Descend(std::span<const int32_t> slots, std::span<const int> parents);

 private:
  int reach_;
  std::vector<int32_t> table_;   // [lanes, reach]
  std::vector<int> steps_;       // [lanes], that hypotheses have taken since they started
  std::vector<int32_t> before_;  // scratch of Descend: the rows of the parents
};

}  // namespace linnet::model
