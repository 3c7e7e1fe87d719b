#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace linnet::model {

// The beam backpointers: for each slot, the slots that hold the last inputs of its hypothesis.
//
// A decoder layer keeps the inputs of the last K steps in state[step mod K][slot]. Hypothesis i of
// a sequence writes to the sequence's i-th slot at every step, whichever hypothesis it extends. A
// reordered beam therefore moves no tensors but rewrites this table, which all layers share:
// of(slot)[j] is the slot of the input of j steps ago. A slot need not be cleared for a new
// sequence: a step reads no further back than the first position of its hypothesis. Not
// thread-safe.
class Backpointers {
 public:
  // `reach`: max number of inputs that a layer reads, including the present one.
  Backpointers(int slots, int reach);

  std::span<const int32_t> of(int slot) const {
    return {&table_[int64_t{slot} * reach_], static_cast<size_t>(reach_)};
  }
  int reach() const { return reach_; }

  // Starts a sequence in these slots. Until its beam is reordered, of(slot) is the slot itself for
  // any number of steps.
  void Start(std::span<const int32_t> slots);
  // Reorders the beam after a step: hypothesis i, which writes its next input to slots[i], extends
  // the previous hypothesis parents[i], whose inputs were those of of(slots[parents[i]]).
  void Descend(std::span<const int32_t> slots, std::span<const int> parents);

 private:
  int reach_;
  std::vector<int32_t> table_;   // [slots, reach]
  std::vector<int> steps_;       // [slots]: steps that the hypothesis has taken
  std::vector<int32_t> before_;  // scratch of Descend: the rows of the parents
};

}  // namespace linnet::model
