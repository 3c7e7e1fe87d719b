#include "model/torch/step_logits.h"

#include <c10/util/Exception.h>

#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/ops/parallel.h"
#include "model/torch/log_normalizer.h"

namespace linnet::model {

StepLogits::StepLogits(ScriptedModel& model, StepInputs& inputs, int rows, int vocabulary,
                       const std::vector<at::Tensor>& memory, const std::vector<at::Tensor>& state)
    : rows_(rows) {
  if (model.picks_best() && !inputs.whole_rows()) {
    TakeBest(model.StepBest(inputs.tensors(), memory, state), inputs, rows);
  } else {
    TakeWhole(model.Step(inputs.tensors(), memory, state), inputs, rows, vocabulary);
  }
}

void StepLogits::TakeWhole(at::Tensor logits, const StepInputs& inputs, int rows, int vocabulary) {
  if (logits.dim() != 2 || logits.size(0) != inputs.rows() || logits.size(1) != vocabulary) {
    throw std::runtime_error(absl::StrCat("step gives logits of another shape than [",
                                          inputs.rows(), " rows, ", vocabulary,
                                          " tokens]: ", c10::str(logits.sizes())));
  }
  logits_ = logits.narrow(0, 0, rows).to(at::kCPU, at::kFloat).contiguous();
  const float* values = logits_.const_data_ptr<float>();
  ops::ParallelFor(rows, 16 * vocabulary, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* row = values + i * vocabulary;
      rows_[i] = {.logits = {row, static_cast<size_t>(vocabulary)},
                  .log_normalizer = LogNormalizer(row, vocabulary, inputs.temperature(i))};
    }
  });
}

void StepLogits::TakeBest(BestLogits best, const StepInputs& inputs, int rows) {
  if (best.logits.dim() != 2 || best.logits.size(0) != inputs.rows() ||
      best.tokens.sizes() != best.logits.sizes() || best.log_normalizers.dim() != 1 ||
      best.log_normalizers.size(0) != inputs.rows()) {
    throw std::runtime_error(absl::StrCat("step_best gives tensors of other shapes than [",
                                          inputs.rows(), " rows, N] twice and [", inputs.rows(),
                                          " rows]"));
  }
  logits_ = best.logits.to(at::kFloat).contiguous();
  tokens_ = best.tokens.to(at::kInt).contiguous();
  const at::Tensor normalizers = best.log_normalizers.to(at::kFloat).contiguous();
  const size_t width = logits_.size(1);
  for (int i = 0; i < rows; ++i) {
    // What was not asked for lies there as -infinity, and no search takes that.
    rows_[i] = {.logits = {logits_.const_data_ptr<float>() + i * width, width},
                .tokens = {tokens_.const_data_ptr<int32_t>() + i * width, width},
                .log_normalizer = normalizers.const_data_ptr<float>()[i]};
  }
}

}  // namespace linnet::model
