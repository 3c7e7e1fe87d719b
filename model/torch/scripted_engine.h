#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/runtime/engine.h"
#include "model/runtime/search/shortlist.h"
#include "model/torch/backpointers.h"
#include "model/torch/device_decoder.h"
#include "model/torch/free_list.h"
#include "model/torch/scripted_model.h"
#include "model/torch/step_inputs.h"
#include "model/torch/step_logits.h"

namespace linnet::model {

// Tokens in a block of the encoder cache. A source wastes half a block on average.
inline constexpr int kBlockTokens = 16;

struct ScriptedEngineOptions {
  bool mask_eos = false;  // decode every hypothesis to its limit
  int alignment_layer = 0;
  // Every step has all rows and every source is encoded separately, so that each gemm has one
  // shape.
  bool one_shape = false;
};

// The engine on a ScriptedModel: one decoder step for all running sequences, which are added and
// released between steps. torch_engine.h documents its guarantees. Not thread-safe: one thread
// calls it.
class ScriptedEngine final : public Engine {
 public:
  // `info.encoder_cache_tokens` is a multiple of kBlockTokens. Throws c10::Error.
  ScriptedEngine(ScriptedModel model, EngineInfo info, const ScriptedEngineOptions& options,
                 std::optional<Shortlist> shortlist);
  ~ScriptedEngine() override;

  const EngineInfo& info() const override { return info_; }
  bool HasRoom(std::span<const SequenceInput> sequences) const override;
  absl::Status Check(const SequenceInput& sequence) const override;
  absl::Status Add(std::span<const SequenceInput> sequences) override;
  absl::StatusOr<std::vector<SequenceEvent>> Step() override;
  void Release(SequenceId id) override;
  int sequences() const override;
  int rows_in_use() const override { return slots_.used(); }

  absl::Status WarmUp();
  // Moves the searches that the device supports to the device (device_decoder.h). Call it before
  // the first Add. Throws as DeviceDecoder::Prepare.
  void SearchOnDevice(const std::string& no_graphs);

 private:
  struct RunningSequence;
  struct InFlightSequence;

  std::optional<OutputRows> OutputsFor(const SequenceInput& sequence);
  void Encode(std::span<const SequenceInput> sequences, std::span<const RunningSequence> added);
  // Logits of all sequences that are searched on the host: as much of each row as its search needs,
  // or the whole rows.
  StepLogits ComputeLogits(bool whole_rows);
  bool Suffices(const StepLogits& logits) const;
  int ReachAt(int steps) const;
  void AddIdleRows();
  void AdvanceSearches(const StepLogits& logits);
  void AdvancePasses();
  bool LaunchStep();
  void CollectStep();
  std::vector<SequenceEvent> TakeEvents();

  ScriptedModel model_;
  EngineInfo info_;
  ScriptedEngineOptions options_;
  std::optional<Shortlist> shortlist_;
  FreeList slots_;
  FreeList blocks_;
  std::vector<at::Tensor> state_;  // per layer, [K, slots, C]
  // Per layer, [blocks + 1, kBlockTokens, 2, d]; the last block takes the padding.
  std::vector<at::Tensor> encoder_cache_;
  Backpointers backpointers_;
  int min_reach_;
  StepInputs inputs_;
  std::vector<RunningSequence> running_;  // in the order of Add
  c10::Stream encoder_stream_;
  std::unique_ptr<DeviceDecoder> device_;                // null if only the host searches
  std::deque<std::vector<InFlightSequence>> in_flight_;  // of device_, oldest first
  uint64_t ever_added_ = 0;
};

}  // namespace linnet::model
