#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/api/module.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "model/runtime/search/token.h"
#include "model/torch/torch_engine.h"

namespace linnet::model {

// What a step says of each of its R rows. All tensors lie on the CPU; blocks are numbers in the
// memory pools.
struct StepTensors {
  at::Tensor tokens;          // int64 [R]
  at::Tensor positions;       // int32 [R]
  at::Tensor backpointers;    // int32 [R, A]
  at::Tensor blocks;          // int32 [R, M]
  at::Tensor source_lengths;  // int32 [R]
  // What the searches must know of the logits: see RowNeed, and ops/best_logits.h.
  at::Tensor counts;        // int32 [R]
  at::Tensor also;          // int32 [R]
  at::Tensor temperatures;  // float32 [R]
};

// What best_logits gives of each row.
struct BestLogits {
  at::Tensor logits;           // float32 [R, N]
  at::Tensor tokens;           // int32 [R, N]
  at::Tensor log_normalizers;  // float32 [R]
};

// What gives the logits of some tokens, ascending: a part of the output table.
struct OutputRows {
  std::vector<TokenId> tokens;
  at::Tensor weight;               // packed, [tokens, d]
  std::optional<at::Tensor> bias;  // float32 [tokens]
};

// A bundle's TorchScript module, converted to a device and a type.
//
// It offers these methods, and the engine knows nothing else of the architecture:
//   encode(source int64 [B, S], lengths int32 [B]) -> list: for each decoder layer what it attends
//                                                     to, [B, S, 2, d]
//   step(tokens, positions, ancestry, blocks, source_lengths, memory list, state list)
//                                                  -> logits [R, V]
//   step_best(the same, counts, also, temperatures) -> what BestLogits holds, in a tuple. Bundles
//                                                     made before it was there have no such method
//   features(as step)                              -> [R, d], of which the following make logits
//   logits_of(features)                            -> logits [R, V]
//   output_rows(tokens int32 [N])                  -> a tuple: weight [N, d] and bias [N] or None,
//   as
//                                                     best_logits takes them. Nor have those the
//                                                     three
//   align(as step, layer)                          -> float32 [R, >= M * P]: how much each token of
//                                                     the source counts in that decoder layer.
//                                                     Nor have those
//   new_state(lanes)                               -> list of [K, lanes, C]
//   min_backpointers()                               -> int: A as long as no row has taken more
//   than
//                                                     A - 1 steps. Bundles made before it was there
//                                                     want A to be the largest K of new_state
//   new_encoder_cache(blocks, block_tokens)               -> list of [N, P, 2, d]
//   pack(kind)                                     -> nothing: the weights of linear layers are
//                                                     laid out for the CPU (ops/linear.h). Bundles
//                                                     made before it was possible have no such
//                                                     method, and run as they are
//
// All functions throw what torch throws (see border.h), and std::runtime_error where the module
// breaks this contract. Keeps no state between calls.
class ScriptedModel {
 public:
  // ResolveComputeType's error if the module cannot be run in that type.
  static absl::StatusOr<ScriptedModel> Load(const std::filesystem::path& file, at::Device device,
                                            ComputeType compute);

  // From now on half-precision steps on a GPU give logits in float32, as sums of products are kept:
  // of the module's features and its output table, of which the model takes a copy. Bundles made
  // before features were there go on giving logits in half precision.
  void GiveLogitsInFloat32(int vocabulary_size);

  std::vector<at::Tensor> NewState(int64_t slots);
  // `widest`, the largest K of the state, where the module or the device wants it always.
  int MinBackpointers(int widest);
  std::vector<at::Tensor> NewEncoderCache(int64_t blocks, int64_t block_tokens);
  std::vector<at::Tensor> Encode(const at::Tensor& source, const at::Tensor& lengths);
  // Changes `state` in place.
  at::Tensor Step(const StepTensors& rows, const std::vector<at::Tensor>& encoder_cache,
                  const std::vector<at::Tensor>& state);
  // Only if picks_best().
  BestLogits StepBest(const StepTensors& rows, const std::vector<at::Tensor>& encoder_cache,
                      const std::vector<at::Tensor>& state);

  // Only if aligns(). The row's blocks are read as far as its source is long, and weights behind
  // that are nothing. State of layers above `layer` is not changed.
  at::Tensor Align(const StepTensors& rows, const std::vector<at::Tensor>& encoder_cache,
                   const std::vector<at::Tensor>& state, int layer);

  // These three only if narrows().
  at::Tensor Features(const StepTensors& rows, const std::vector<at::Tensor>& encoder_cache,
                      const std::vector<at::Tensor>& state);
  at::Tensor LogitsOf(const at::Tensor& features);
  OutputRows RowsOf(std::vector<TokenId> tokens);

  at::Device device() const { return device_; }
  ComputeType compute() const { return compute_; }  // never kAuto
  // A row's result is the same, bit for bit, however many rows are with it.
  bool rows_alone() const { return rows_alone_; }
  bool picks_best() const { return picks_best_; }
  // Its logits can be had of some tokens alone: the bundle is not of before that was possible, and
  // the weights are packed for float32 or int8.
  bool narrows() const;
  bool aligns() const { return module_.find_method("align").has_value(); }

 private:
  ScriptedModel(at::Device device, ComputeType compute, bool rows_alone, torch::jit::Module module);
  std::vector<c10::IValue> Arguments(const StepTensors& rows,
                                     const std::vector<at::Tensor>& encoder_cache,
                                     const std::vector<at::Tensor>& state) const;

  at::Device device_;
  ComputeType compute_;
  bool rows_alone_;
  bool picks_best_;
  torch::jit::Module module_;
  std::optional<OutputRows> float_outputs_;  // GiveLogitsInFloat32: all of the vocabulary
};

}  // namespace linnet::model
