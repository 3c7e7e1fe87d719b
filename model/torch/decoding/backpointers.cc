#include "model/torch/decoding/backpointers.h"

#include <algorithm>

namespace linnet::model {

Backpointers::Backpointers(int slots, int reach)
    : reach_(reach), table_(int64_t{slots} * reach), steps_(slots) {}

void Backpointers::Start(std::span<const int32_t> slots) {
  for (int32_t slot : slots) {
    std::fill_n(table_.begin() + int64_t{slot} * reach_, reach_, slot);
    steps_[slot] = 0;
  }
}

void Backpointers::Descend(std::span<const int32_t> slots, std::span<const int> parents) {
  if (parents.empty()) return;
  // Copy only entries that exist: a state may hold a whole target, and most targets are short.
  const int steps = steps_[slots[parents[0]]] + 1, known = std::min(steps, reach_ - 1);
  before_.clear();
  for (int parent : parents) {
    const auto row = of(slots[parent]);
    before_.insert(before_.end(), row.begin(), row.begin() + known);
  }
  for (size_t i = 0; i < parents.size(); ++i) {
    int32_t* row = &table_[int64_t{slots[i]} * reach_];
    row[0] = slots[i];
    std::copy_n(before_.begin() + i * known, known, row + 1);
    steps_[slots[i]] = steps;
  }
}

}  // namespace linnet::model
