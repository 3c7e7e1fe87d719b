#pragma once

#include <span>

#include "model/torch/decoding/backpointers.h"
#include "model/torch/decoding/decoder_context.h"
#include "model/torch/decoding/running_sequence.h"
#include "model/torch/decoding/step_inputs.h"
#include "model/torch/decoding/step_logits.h"
#include "model/torch/encoder/encoder_cache.h"

namespace linnet::model {

// Decodes the sequences that are searched on the host, and runs the alignment passes of all
// sequences: computes the rows of a step, waits for the logits or attention weights, and advances
// every search or pass with them.
//
// ScriptedEngine owns it; not thread-safe, the engine's thread calls it.
class HostDecoder {
 public:
  // `context` and `cache` must outlive it. Throws c10::Error.
  HostDecoder(DecoderContext& context, const EncoderCache& cache);

  // Starts a search or an alignment pass in the slots of the sequence.
  void Start(const RunningSequence& sequence) { backpointers_.Start(sequence.slots.numbers()); }

  // Each of these makes one step for the sequences that are in that stage; others are not touched.
  // If a search fails, its sequence has the status. Both throw c10::Error, and std::runtime_error
  // if the module breaks its contract.
  void AdvanceSearches(std::span<RunningSequence> running);
  void AdvancePasses(std::span<RunningSequence> running);

 private:
  // Logits of all searches: as much of each row as its search needs, or the whole rows.
  StepLogits ComputeLogits(std::span<RunningSequence> running, bool whole_rows);
  int ReachAt(int steps) const;
  void AddIdleRows();

  DecoderContext& context_;
  const EncoderCache& cache_;
  Backpointers backpointers_;
  int min_reach_;
  StepInputs inputs_;
};

}  // namespace linnet::model
