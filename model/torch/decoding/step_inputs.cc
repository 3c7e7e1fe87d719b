#include "model/torch/decoding/step_inputs.h"

#include <ATen/ops/from_blob.h>

namespace linnet::model {
namespace {

at::Tensor View(std::vector<int32_t>& values, at::IntArrayRef shape) {
  return at::from_blob(values.data(), shape, at::kInt);
}

}  // namespace

void StepInputs::Start(int max_blocks, int reach) {
  max_blocks_ = max_blocks;
  reach_ = reach;
  tokens_.clear();
  positions_.clear();
  backpointers_.clear();
  blocks_.clear();
  source_lengths_.clear();
  counts_.clear();
  also_.clear();
  temperatures_.clear();
  whole_rows_ = false;
}

void StepInputs::Add(int64_t token, int position, std::span<const int32_t> backpointers,
                     std::span<const int32_t> blocks, int source_tokens, const RowNeed& need,
                     float temperature) {
  tokens_.push_back(token);
  positions_.push_back(position);
  backpointers_.insert(backpointers_.end(), backpointers.begin(), backpointers.begin() + reach_);
  blocks_.insert(blocks_.end(), blocks.begin(), blocks.end());
  blocks_.resize(tokens_.size() * max_blocks_);  // entries after the source's blocks are not read
  source_lengths_.push_back(source_tokens);
  counts_.push_back(need.best);
  also_.push_back(need.also);
  temperatures_.push_back(temperature);
  whole_rows_ = whole_rows_ || need.all;
}

void StepInputs::AddIdle(int count) {
  tokens_.resize(tokens_.size() + count);
  positions_.resize(tokens_.size());
  backpointers_.resize(tokens_.size() * reach_, -1);
  blocks_.resize(tokens_.size() * max_blocks_);
  source_lengths_.resize(tokens_.size());
  counts_.resize(tokens_.size());
  also_.resize(tokens_.size(), kNoToken);
  temperatures_.resize(tokens_.size(), 1.0f);
}

StepTensors StepInputs::tensors() {
  const int64_t rows = this->rows();
  return {.tokens = at::from_blob(tokens_.data(), {rows}, at::kLong),
          .positions = View(positions_, {rows}),
          .backpointers = View(backpointers_, {rows, reach_}),
          .blocks = View(blocks_, {rows, max_blocks_}),
          .source_lengths = View(source_lengths_, {rows}),
          .counts = View(counts_, {rows}),
          .also = View(also_, {rows}),
          .temperatures = at::from_blob(temperatures_.data(), {rows}, at::kFloat)};
}

}  // namespace linnet::model
