#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "model/runtime/search/row.h"
#include "model/torch/module/scripted_model.h"

namespace linnet::model {

// Collects the rows of one step as tensors. It keeps its memory from step to step. Not thread-safe.
class StepInputs {
 public:
  // Starts a step with at most `max_blocks` blocks per source and `reach` columns of backpointers.
  void Start(int max_blocks, int reach);
  // `backpointers` has `reach` entries or more; `need.best` is at most the vocabulary.
  void Add(int64_t token, int position, std::span<const int32_t> backpointers,
           std::span<const int32_t> blocks, int source_tokens, const RowNeed& need,
           float temperature);
  // Adds padding rows without slot and source.
  void AddIdle(int count);

  int rows() const { return static_cast<int>(tokens_.size()); }
  // True if a search needs all logits of its row.
  bool whole_rows() const { return whole_rows_; }
  float temperature(int row) const { return temperatures_[row]; }
  // Views: valid until the next Start.
  StepTensors tensors();

 private:
  int max_blocks_ = 0, reach_ = 0;
  std::vector<int64_t> tokens_;
  bool whole_rows_ = false;
  std::vector<int32_t> positions_, backpointers_, blocks_, source_lengths_, counts_, also_;
  std::vector<float> temperatures_;
};

}  // namespace linnet::model
