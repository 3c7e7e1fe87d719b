#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "model/runtime/search/row.h"
#include "model/torch/decoding/step_inputs.h"
#include "model/torch/module/scripted_model.h"

namespace linnet::model {

// Rows of a step that need the logits of some tokens only.
struct NarrowRows {
  int first_row, rows;
  const OutputRows* outputs;
};

// The logits of the first `rows` rows of a step, in the form that the searches read: the highest of
// each row on the CPU if no search needs whole rows, otherwise all.
class StepLogits {
 public:
  // Runs the step. Throws c10::Error, and std::runtime_error if the module returns a wrong shape.
  // `narrow` is in the order of the rows; if it is not empty, model.packed() is required.
  StepLogits(ScriptedModel& model, StepInputs& inputs, int rows, int vocabulary,
             const std::vector<at::Tensor>& encoder_cache, const std::vector<at::Tensor>& state,
             std::span<const NarrowRows> narrow, StepWeights* weights);

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
  at::Tensor others_;  // logits of the whole rows, if some rows are narrow
  std::vector<RowLogits> rows_;
};

}  // namespace linnet::model
