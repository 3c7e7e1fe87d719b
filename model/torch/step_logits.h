#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "model/runtime/search.h"
#include "model/torch/scripted_model.h"
#include "model/torch/step_inputs.h"

namespace linnet::model {

// What a step says of the first `rows` of its rows, as the searches take it: the highest logits of
// each where the module picks them and no row is needed whole, else all of them.
class StepLogits {
 public:
  // Runs the step. Throws what torch throws, and std::runtime_error where the module gives
  // something of another shape.
  StepLogits(ScriptedModel& model, StepInputs& inputs, int rows, int vocabulary,
             const std::vector<at::Tensor>& memory, const std::vector<at::Tensor>& state);

  // In the order of the rows. Valid as long as this lives.
  std::span<const RowLogits> rows() const { return rows_; }

 private:
  void TakeWhole(at::Tensor logits, const StepInputs& inputs, int rows, int vocabulary);
  void TakeBest(BestLogits best, const StepInputs& inputs, int rows);

  at::Tensor logits_, tokens_;
  std::vector<RowLogits> rows_;
};

}  // namespace linnet::model
