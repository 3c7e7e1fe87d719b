#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "model/runtime/engine.h"
#include "model/torch/decoding/alignment_pass.h"
#include "model/torch/decoding/search_attention.h"
#include "model/torch/encoder/encoder_call.h"
#include "model/torch/encoder/free_list.h"
#include "model/torch/module/scripted_model.h"

namespace linnet::model {

// A running sequence with its slots and search. After the search it has no rows, except the row of
// its alignment pass. ScriptedEngine owns it; the decoders advance it.
struct RunningSequence {
  SequenceId id;
  SearchOptions options;  // the limits on target tokens include the silent ones
  std::unique_ptr<Search> search;
  int source_tokens;
  AlignmentPass::Text text;  // within the source
  std::vector<TokenId> silent;
  FreeList::Lease slots;   // beam_size of them; hypothesis i is in the i-th
  FreeList::Lease blocks;  // of the encoder cache
  bool report_stable;
  bool align;
  std::optional<OutputRows> outputs;  // outputs of the shortlist; null: whole vocabulary
  std::optional<SearchAttention> attention = std::nullopt;  // of the search; then without a pass
  std::optional<AlignmentPass> pass = std::nullopt;         // after the search, in the first slot
  EncodedSource encoded = {};                               // empty once the encoder is done
  absl::Status status = {};                                 // of the current step
  bool paused = false;                                      // Engine::Pause
  // In the current step of the host decoder, as HostDecoder::Plan has decided.
  int rows = 0;   // 0: it waits; otherwise one per live hypothesis, and `ahead` more
  int ahead = 0;  // of the only hypothesis: known tokens behind the next one
  int first_row = 0;

  // The search runs on the device (device_decoder.h); `search` follows one step late.
  bool on_device = false;
  uint64_t number = 0;  // in the order of all sequences ever added
  int launched = 0;     // steps launched on the device
  int max_steps = 0;    // the search ends after at most that many

  bool done() const {
    if (!status.ok()) return true;
    return pass.has_value() ? pass->finished() : search->finished();
  }
  bool searched_by_host() const {
    return !on_device && !pass.has_value() && !search->finished() && status.ok();
  }
  // Requires encoded.pending() and the end of the call. A failure is the status of the sequence.
  void TakeEncoded() {
    if (absl::Status ended = encoded.Take(); !ended.ok()) status = std::move(ended);
  }
};

}  // namespace linnet::model
