#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "model/runtime/search/search.h"
#include "model/torch/scripted_model.h"
#include "model/torch/step_inputs.h"

namespace linnet::model {

// Rows of a step that want the logits of some tokens alone, and are never needed whole.
struct NarrowRows {
  int first_row, rows;
  const OutputRows* outputs;
};

// What a step says of the first `rows` of its rows, as the searches take it: the highest logits of
// each where the module picks them and no row is needed whole, else all of them.
class StepLogits {
 public:
  // Runs the step. Throws what torch throws, and std::runtime_error where the module gives
  // something of another shape. `narrow` is in the order of the rows; where it is not empty,
  // model.narrows().
  StepLogits(ScriptedModel& model, StepInputs& inputs, int rows, int vocabulary,
             const std::vector<at::Tensor>& encoder_cache, const std::vector<at::Tensor>& state,
             std::span<const NarrowRows> narrow = {});

  // In the order of the rows. Valid as long as this lives.
  std::span<const RowLogits> rows() const { return rows_; }

 private:
  void TakeWhole(at::Tensor logits, const StepInputs& inputs, int rows, int vocabulary);
  void TakeBest(BestLogits best, const StepInputs& inputs, int rows);
  void TakeNarrow(at::Tensor features, const StepTensors& inputs,
                  std::span<const NarrowRows> narrow);
  void TakeOthers(at::Tensor logits, const std::vector<int64_t>& others, const StepInputs& inputs,
                  int vocabulary);

  at::Tensor logits_, tokens_;
  at::Tensor others_;  // the whole rows, where others are narrow
  std::vector<RowLogits> rows_;
};

}  // namespace linnet::model
