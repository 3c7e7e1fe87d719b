#include "model/torch/ancestry.h"

#include <algorithm>

namespace linnet::model {

Ancestry::Ancestry(int lanes, int reach) : reach_(reach), table_(int64_t{lanes} * reach) {}

void Ancestry::Start(std::span<const int32_t> lanes) {
  for (int32_t lane : lanes) std::fill_n(&table_[int64_t{lane} * reach_], reach_, lane);
}

void Ancestry::Descend(std::span<const int32_t> lanes, std::span<const int> parents) {
  before_.clear();
  for (int parent : parents) {
    const auto row = of(lanes[parent]);
    before_.insert(before_.end(), row.begin(), row.end());
  }
  for (size_t i = 0; i < parents.size(); ++i) {
    int32_t* row = &table_[int64_t{lanes[i]} * reach_];
    row[0] = lanes[i];
    std::copy_n(&before_[i * reach_], reach_ - 1, row + 1);
  }
}

}  // namespace linnet::model
