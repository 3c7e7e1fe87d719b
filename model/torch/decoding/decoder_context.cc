#include "model/torch/decoding/decoder_context.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace linnet::model {
namespace {

int DeepestState(const std::vector<at::Tensor>& state) {
  int64_t deepest = 1;
  for (const at::Tensor& layer : state) {
    if (layer.dim() == 0) throw std::runtime_error("new_state gives a tensor without dimensions");
    deepest = std::max(deepest, layer.size(0));
  }
  return static_cast<int>(deepest);
}

}  // namespace

DecoderContext::DecoderContext(ScriptedModel model, EngineInfo info,
                               const ScriptedEngineOptions& options)
    : model(std::move(model)),
      info(std::move(info)),
      options(options),
      state(this->model.NewState(this->info.rows)),
      reach(DeepestState(state)) {}

}  // namespace linnet::model
