#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "model/runtime/engine.h"
#include "model/torch/module/scripted_model.h"
#include "model/torch/module/step_threads.h"

namespace linnet::model {

struct ScriptedEngineOptions {
  bool mask_eos = false;  // decode every hypothesis to its limit
  int alignment_layer = 0;
  // Every step has all rows and every source is encoded separately, so that each gemm has one
  // shape.
  bool one_shape = false;
  // Gemms of the device's steps use the fastest algorithm for their shape (ops/gemm_choice.h).
  bool time_gemms = false;
  // For packed weights, whose results do not depend on the threads; otherwise all are used.
  std::optional<StepThreads> threads = std::nullopt;
};

// The model of an engine and the memory that its decoders share. A sequence has the same slots of
// the state in its search, on the host or on the device, and in its alignment pass.
//
// ScriptedEngine owns it and its thread alone uses it. Throws c10::Error.
struct DecoderContext {
  DecoderContext(ScriptedModel model, EngineInfo info, const ScriptedEngineOptions& options);
  DecoderContext(const DecoderContext&) = delete;
  DecoderContext& operator=(const DecoderContext&) = delete;

  ScriptedModel model;
  EngineInfo info;
  const ScriptedEngineOptions options;
  const std::vector<at::Tensor> state;  // of the decoder: per layer, [K, slots, C]
  const int reach;                      // the largest K
};

}  // namespace linnet::model
