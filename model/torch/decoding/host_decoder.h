#pragma once

#include <span>

#include "model/torch/decoding/backpointers.h"
#include "model/torch/decoding/decoder_context.h"
#include "model/torch/decoding/running_sequence.h"
#include "model/torch/decoding/step_inputs.h"
#include "model/torch/decoding/step_logits.h"
#include "model/torch/encoder/encoder_cache.h"

namespace linnet::model {

// Decodes the sequences that are searched on the host, and runs the alignment passes of sequences
// whose search gives no attention weights: computes the rows of a step, waits for the logits or
// attention weights, and advances every search or pass with them.
//
// On the CPU all known tokens of a target go through in one step: a target to score, a prefix, and
// the target of an alignment pass. Each token is a row, and the rows of a target are a run in one
// slot (ops/convolution/convolution_step.h), so that scores and weights have the bits of single
// steps. A step takes only so many such rows; other targets wait for the next one. A GPU, and an
// engine with one shape for all steps, computes one token of each target per step.
//
// A step here costs the sequences that the device searches more than one of their own. Therefore
// the host steps as often as its share of the rows allows: next to n times as many rows on the
// device in every n-th cycle of the engine.
//
// ScriptedEngine owns it; not thread-safe, the engine's thread calls it.
class HostDecoder {
 public:
  // `context` and `cache` must outlive it. Throws c10::Error.
  HostDecoder(DecoderContext& context, const EncoderCache& cache);

  // Starts a search or an alignment pass in the slots of the sequence.
  void Start(const RunningSequence& sequence) { backpointers_.Start(sequence.slots.numbers()); }

  // True if searches give the weights of an alignment themselves, without a pass.
  bool aligns_searches() const {
    return context_.model.aligns_steps() && !context_.options.one_shape;
  }

  // Decides on the rows of each sequence in the next step; called once in a cycle of the engine.
  void Plan(std::span<RunningSequence> running);
  // Each of these makes one step, as planned, for the sequences that are in that stage; others are
  // not touched. If a search fails, its sequence has the status. Both throw c10::Error, and
  // std::runtime_error if the module breaks its contract.
  void AdvanceSearches(std::span<RunningSequence> running);
  void AdvancePasses(std::span<RunningSequence> running);

 private:
  // Logits of all searches: as much of each row as its search needs, or the whole rows; and the
  // weights of the alignment layer, if a search needs them.
  StepLogits ComputeLogits(std::span<RunningSequence> running, bool whole_rows,
                           at::Tensor& weights);
  // The weights as float32 on the CPU. Throws std::runtime_error if they have another shape.
  at::Tensor CheckWeights(const at::Tensor& weights, int max_blocks) const;
  int ReachAt(int steps) const;
  void AddIdleRows();
  // True if the host makes a step in this cycle.
  bool IsDue(std::span<const RunningSequence> running);

  DecoderContext& context_;
  const EncoderCache& cache_;
  Backpointers backpointers_;
  int min_reach_;
  int waited_ = 0;  // cycles since the last step
  StepInputs inputs_;
};

}  // namespace linnet::model
