#include "model/torch/decoding/step_logits.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "model/ops/cpu/log_normalizer.h"
#include "model/ops/cpu/parallel.h"
#include "model/ops/pack_linear.h"
#include "model/ops/params.h"

namespace linnet::model {

StepLogits::StepLogits(ScriptedModel& model, StepInputs& inputs, int rows, int vocabulary,
                       const std::vector<at::Tensor>& encoder_cache,
                       const std::vector<at::Tensor>& state, std::span<const NarrowRows> narrow,
                       StepWeights* weights)
    : rows_(rows) {
  if (!narrow.empty()) {
    const StepTensors tensors = inputs.tensors();
    const at::Tensor features = model.Features(tensors, encoder_cache, state, weights).contiguous();
    if (features.dim() != 2 || features.size(0) != inputs.rows()) {
      throw std::runtime_error(absl::StrCat("features gives another shape than [", inputs.rows(),
                                            " rows, d]: ", c10::str(features.sizes())));
    }
    std::vector<int64_t> others;
    int row = 0;
    for (const NarrowRows& some : narrow) {
      for (; row < some.first_row; ++row) others.push_back(row);
      row += some.rows;
    }
    for (; row < rows; ++row) others.push_back(row);
    if (!others.empty()) {
      const at::Tensor index =
          at::from_blob(others.data(), {static_cast<int64_t>(others.size())}, at::kLong);
      TakeOthers(model.ComputeLogits(features.index_select(0, index)), others, inputs, vocabulary);
    }
    TakeNarrow(features, tensors, narrow);
  } else if (model.picks_best() && !inputs.whole_rows()) {
    TakeBest(model.StepBest(inputs.tensors(), encoder_cache, state, weights), inputs, rows);
  } else {
    TakeWhole(model.Step(inputs.tensors(), encoder_cache, state, weights), inputs, rows,
              vocabulary);
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
                  .log_normalizer = ops::LogNormalizer(row, vocabulary, inputs.temperature(i))};
    }
  });
}

void StepLogits::TakeOthers(at::Tensor logits, const std::vector<int64_t>& others,
                            const StepInputs& inputs, int vocabulary) {
  if (logits.dim() != 2 || logits.size(0) != std::ssize(others) || logits.size(1) != vocabulary) {
    throw std::runtime_error(absl::StrCat("logits_of gives logits of another shape than [",
                                          others.size(), " rows, ", vocabulary,
                                          " tokens]: ", c10::str(logits.sizes())));
  }
  others_ = logits.contiguous();
  const float* values = others_.const_data_ptr<float>();
  ops::ParallelFor(std::ssize(others), 16 * vocabulary, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* row = values + i * vocabulary;
      rows_[others[i]] = {
          .logits = {row, static_cast<size_t>(vocabulary)},
          .log_normalizer = ops::LogNormalizer(row, vocabulary, inputs.temperature(others[i]))};
    }
  });
}

// Each sequence has its own tokens: several sequences run in parallel, one thread each; a single
// one uses all threads.
void StepLogits::TakeNarrow(at::Tensor features, const StepTensors& inputs,
                            std::span<const NarrowRows> narrow) {
  const int64_t rows = std::ssize(rows_), depth = features.size(1);
  const int32_t* wanted = inputs.counts.const_data_ptr<int32_t>();
  const int32_t* also = inputs.also.const_data_ptr<int32_t>();
  std::vector<int32_t> counts(rows), places(rows, kNoToken);  // of `also` among the tokens
  int64_t work = 0, width = 1;
  for (const NarrowRows& some : narrow) {
    const std::vector<TokenId>& tokens = some.outputs->tokens;
    work += some.rows * std::ssize(tokens) * depth;
    for (int row = some.first_row; row < some.first_row + some.rows; ++row) {
      counts[row] = std::min<int32_t>(wanted[row], std::ssize(tokens));
      width = std::max<int64_t>(width, counts[row] + 1);
      if (also[row] == kNoToken) continue;
      const auto place = std::lower_bound(tokens.begin(), tokens.end(), also[row]);
      if (place == tokens.end() || *place != also[row]) {
        throw std::runtime_error(absl::StrCat("token ", also[row], " is not on the shortlist"));
      }
      places[row] = static_cast<int32_t>(place - tokens.begin());
    }
  }
  logits_ = at::empty({rows, width}, at::kFloat);
  tokens_ = at::empty({rows, width}, at::kInt);
  std::vector<float> normalizers(rows);
  const auto read = [&](int64_t begin, int64_t end) {
    for (const NarrowRows& some : narrow.subspan(begin, end - begin)) {
      const int first = some.first_row;
      const OutputRows& outputs = *some.outputs;
      ops::BestLogitsCpu({.weight = ops::FindPackedMatrix(outputs.weight),
                          .given = nullptr,
                          .x = features.const_data_ptr<float>() + first * depth,
                          .bias = outputs.bias ? outputs.bias->const_data_ptr<float>() : nullptr,
                          .counts = counts.data() + first,
                          .also = places.data() + first,
                          .temperatures = inputs.temperatures.const_data_ptr<float>() + first,
                          .logits = logits_.mutable_data_ptr<float>() + first * width,
                          .found = tokens_.mutable_data_ptr<int32_t>() + first * width,
                          .log_normalizers = normalizers.data() + first,
                          .rows = some.rows,
                          .tokens = std::ssize(outputs.tokens),
                          .width = width});
      for (int row = first; row < first + some.rows; ++row) {
        int32_t* found = tokens_.mutable_data_ptr<int32_t>() + row * width;
        for (int64_t i = 0; i < width; ++i) {
          if (found[i] >= 0) found[i] = outputs.tokens[found[i]];
        }
        rows_[row] = {
            .logits = {logits_.const_data_ptr<float>() + row * width, static_cast<size_t>(width)},
            .tokens = {found, static_cast<size_t>(width)},
            .log_normalizer = normalizers[row]};
      }
    }
  };
  if (narrow.size() == 1) {
    read(0, 1);
  } else {
    ops::ParallelFor(std::ssize(narrow), work / std::ssize(narrow), read);
  }
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
    // Unrequested entries are -infinity, which no search selects.
    rows_[i] = {.logits = {logits_.const_data_ptr<float>() + i * width, width},
                .tokens = {tokens_.const_data_ptr<int32_t>() + i * width, width},
                .log_normalizer = normalizers.const_data_ptr<float>()[i]};
  }
}

}  // namespace linnet::model
