#include "model/torch/ancestry.h"

#include <algorithm>

namespace linnet::model {

Ancestry::Ancestry(int lanes, int reach)
    : reach_(reach), table_(int64_t{lanes} * reach), steps_(lanes) {}

void Ancestry::Start(std::span<const int32_t> lanes) {
  for (int32_t lane : lanes) {
    table_[int64_t{lane} * reach_] = lane;
    steps_[lane] = 0;
  }
}

void Ancestry::Descend(std::span<const int32_t> lanes, std::span<const int> parents) {
  if (parents.empty()) return;
  // No more than there is: a window may hold a whole target, and most targets are short.
  const int steps = steps_[lanes[parents[0]]] + 1, known = std::min(steps, reach_ - 1);
  before_.clear();
  for (int parent : parents) {
    const auto row = of(lanes[parent]);
    before_.insert(before_.end(), row.begin(), row.begin() + known);
  }
  for (size_t i = 0; i < parents.size(); ++i) {
    int32_t* row = &table_[int64_t{lanes[i]} * reach_];
    row[0] = lanes[i];
    std::copy_n(before_.begin() + i * known, known, row + 1);
    steps_[lanes[i]] = steps;
  }
}

}  // namespace linnet::model
