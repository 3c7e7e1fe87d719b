#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/api/module.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "model/runtime/search/token.h"
#include "model/torch/module/engine_options.h"

namespace linnet::model {

// Inputs of a decoder step with R rows. The host decoder's tensors are on the CPU and are copied to
// the device; the device decoder's are on the device already. `blocks` are numbers of blocks in the
// encoder cache.
struct StepTensors {
  at::Tensor tokens;          // int64 [R]
  at::Tensor positions;       // int32 [R]
  at::Tensor backpointers;    // int32 [R, B]
  at::Tensor blocks;          // int32 [R, M]
  at::Tensor source_lengths;  // int32 [R]
  // The logits that the searches need: see RowNeed and ops/search/best_logits.h.
  at::Tensor counts;        // int32 [R]
  at::Tensor also;          // int32 [R]
  at::Tensor temperatures;  // float32 [R]
};

// Results of best_logits.
struct BestLogits {
  at::Tensor logits;           // float32 [R, N]
  at::Tensor tokens;           // int32 [R, N]
  at::Tensor log_normalizers;  // float32 [R]
};

// Asks a step for attention weights as well: those of this decoder layer, as Align returns them.
struct StepWeights {
  int layer = 0;
  at::Tensor weights = {};
};

// Rows of the output projection, for the logits of some tokens (ascending).
struct OutputRows {
  std::vector<TokenId> tokens;
  at::Tensor weight;               // packed, [tokens, d]
  std::optional<at::Tensor> bias;  // float32 [tokens]
};

// A bundle's TorchScript module, converted to a device and a compute type.
//
// Methods of the module, all required and all that the engine uses of an architecture (R rows,
// S slots, B columns of backpointers, M blocks per row, N blocks of P tokens, V tokens):
//   encode(source int64 [batch, time], lengths int32 [batch])
//       -> list: for each decoder layer its keys and values, [batch, time, 2, d]
//   step(tokens, positions, backpointers, blocks, source_lengths, encoder_cache list, state list)
//       -> logits [R, V]; changes state in place
//   new_state(S)
//       -> list of [K, S, ...], zeros, K positions (ops/convolution/convolution_step.h)
//   new_encoder_cache(N, P)
//       -> list of [N, P, 2, d], zeros
//   step_best(as step, counts, also, temperatures)
//       -> tuple of the fields of BestLogits, so that logits are never all in memory
//   features(as step)
//       -> [R, d], for shortlists and float32 logits as the next two
//   logits_of(features)
//       -> logits [R, V]
//   output_rows(tokens int32 [n])
//       -> tuple of weight [n, d] and bias [n] or None, as best_logits takes them
//   align(as step, layer)
//       -> float32 [R, >= M * P]: weight of each source token in that decoder layer
//   encode_blocks(source int64 [N, P], lengths int32 [N], starts int32 [N]); not required, used if
//   the attribute packs_sources is true
//       -> as encode, [N, P, 2, d], of sources in blocks (ops/first_position.h)
//   align_features(as step, layer), best_of(features, counts, also, temperatures); not required
//       -> tuple of features and align; as step_best
//   min_backpointers()
//       -> int: B while no row has taken more than B - 1 steps
//   pack(type)
//       -> nothing; packs the weights of linear layers for the CPU (ops/pack_linear.h)
//
// Calls throw c10::Error (see catch_torch_errors.h), and std::runtime_error if the module breaks
// this contract. Keeps no state between calls. ScriptedEngine owns it; not thread-safe.
class ScriptedModel {
 public:
  // ResolveComputeType's error if the module cannot be run in that type.
  static absl::StatusOr<ScriptedModel> Load(const std::filesystem::path& file, at::Device device,
                                            ComputeType compute);

  // Makes half-precision steps on a GPU return logits in float32, without rounding their sums. The
  // model copies the module's output projection for this.
  void ConvertLogitsToFloat32(int vocabulary_size);

  std::vector<at::Tensor> NewState(int64_t slots);
  // Returns `deepest`, the largest K of the state, if the device needs one shape for all steps.
  int MinBackpointers(int deepest);
  std::vector<at::Tensor> NewEncoderCache(int64_t blocks, int64_t block_tokens);
  std::vector<at::Tensor> Encode(const at::Tensor& source, const at::Tensor& lengths);
  // Requires packs_sources(). The tensors are on the device.
  std::vector<at::Tensor> EncodeBlocks(const at::Tensor& source, const at::Tensor& lengths,
                                       const at::Tensor& starts);
  // Changes `state` in place. Here and below, `weights` requires aligns_steps().
  at::Tensor Step(const StepTensors& rows, const std::vector<at::Tensor>& encoder_cache,
                  const std::vector<at::Tensor>& state, StepWeights* weights = nullptr);
  // Requires picks_best(), or the logits would be computed in half precision. With many rows each
  // thread takes a part of them through the whole step.
  BestLogits StepBest(const StepTensors& rows, const std::vector<at::Tensor>& encoder_cache,
                      const std::vector<at::Tensor>& state, StepWeights* weights = nullptr);

  // Weights after the last source token are undefined. The state of layers above `layer` is not
  // changed.
  at::Tensor Align(const StepTensors& rows, const std::vector<at::Tensor>& encoder_cache,
                   const std::vector<at::Tensor>& state, int layer);

  // On the CPU the rows of OutputRowsFor are packed.
  at::Tensor Features(const StepTensors& rows, const std::vector<at::Tensor>& encoder_cache,
                      const std::vector<at::Tensor>& state, StepWeights* weights = nullptr);
  at::Tensor ComputeLogits(const at::Tensor& features);
  OutputRows OutputRowsFor(std::vector<TokenId> tokens);

  at::Device device() const { return device_; }
  ComputeType compute() const { return compute_; }  // never kAuto
  // The weights are packed for float32 or int8 (ops/pack_linear.h): a row's result has the same
  // bits for any number of rows in the step, and a shortlist can be used.
  bool packed() const { return device_.is_cpu() && compute_ != ComputeType::kBfloat16; }
  // Sources can be encoded in blocks. Modules that were exported by an earlier version cannot.
  bool packs_sources() const { return packs_sources_; }
  // StepBest can be used. An ensemble has only Step.
  bool picks_best() const { return device_.is_cpu() && has_step_best_; }
  // A step can give attention weights as well. An ensemble, and a module that was exported by an
  // earlier version, has only Align.
  bool aligns_steps() const { return device_.is_cpu() && has_align_features_; }

 private:
  ScriptedModel(at::Device device, ComputeType compute, torch::jit::Module module);
  BestLogits StepBestOfPart(const StepTensors& rows, const std::vector<at::Tensor>& encoder_cache,
                            const std::vector<at::Tensor>& state, StepWeights* weights);
  std::vector<c10::IValue> Arguments(const StepTensors& rows,
                                     const std::vector<at::Tensor>& encoder_cache,
                                     const std::vector<at::Tensor>& state) const;

  at::Device device_;
  ComputeType compute_;
  torch::jit::Module module_;
  bool has_step_best_;
  bool has_align_features_;
  bool packs_sources_;
  std::optional<OutputRows> float_outputs_;  // set by ConvertLogitsToFloat32: the whole vocabulary
};

}  // namespace linnet::model
