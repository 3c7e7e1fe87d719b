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

// Tokens in a block of encoder memory: what a source wastes is half of it on average.
inline constexpr int kBlockTokens = 16;

struct ScriptedEngineOptions {
  bool mask_eos = false;  // every hypothesis runs to its limit
  int alignment_layer = 0;
  // Every step has all rows and every source is encoded alone, so that each product has one shape.
  bool one_shape = false;
};

// What a ScriptedModel and searches make of sequences: a decoder step for all who are seated, who
// come and go between two steps. torch_engine.h says what it promises.
class ScriptedEngine final : public Engine {
 public:
  // `info.encoder_cache_tokens` in whole blocks. Throws what torch throws.
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
  // From now on the searches that can run beside the model do (device_steps.h). Before anything is
  // seated. Throws as DeviceDecoder::Prepare.
  void SearchOnDevice(const std::string& no_graphs);

 private:
  struct RunningSequence;
  struct InFlightStep;

  std::optional<OutputRows> OutputsFor(const SequenceInput& sequence);
  void Encode(std::span<const SequenceInput> sequences, std::span<const RunningSequence> added);
  // Of all that is searched on the host, as much of each row as its search needs, or all of it.
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
  std::vector<at::Tensor> state_;  // per layer, [K, lanes, C]
  // Per layer, [blocks + 1, kBlockTokens, 2, d]; the last block takes the padding.
  std::vector<at::Tensor> encoder_cache_;
  Backpointers backpointers_;
  int min_reach_;
  StepInputs inputs_;
  std::vector<RunningSequence> running_;  // in order of seating
  c10::Stream encoder_stream_;
  std::unique_ptr<DeviceDecoder> device_;            // null: the host searches
  std::deque<std::vector<InFlightStep>> in_flight_;  // the steps that device_ has in flight
  uint64_t ever_added_ = 0;
};

}  // namespace linnet::model
