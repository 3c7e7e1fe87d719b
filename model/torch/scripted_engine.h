#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/runtime/engine.h"
#include "model/runtime/search/shortlist.h"
#include "model/torch/decoding/decoder_context.h"
#include "model/torch/decoding/device_decoder.h"
#include "model/torch/decoding/host_decoder.h"
#include "model/torch/decoding/running_sequence.h"
#include "model/torch/encoder/encoder_cache.h"
#include "model/torch/encoder/free_list.h"
#include "model/torch/module/scripted_model.h"

namespace linnet::model {

// The engine on a ScriptedModel: it admits sequences, gives them slots, has the encoder cache, the
// host decoder and the device decoder do one step for all of them, and reports the events.
// torch_engine.h documents its guarantees. Not thread-safe: one thread calls it.
class ScriptedEngine final : public Engine {
 public:
  // `info.encoder_cache_tokens` is a multiple of kBlockTokens. Throws c10::Error.
  ScriptedEngine(ScriptedModel model, EngineInfo info, const ScriptedEngineOptions& options,
                 std::optional<Shortlist> shortlist);

  const EngineInfo& info() const override { return context_.info; }
  bool HasRoom(std::span<const SequenceInput> sequences) const override;
  absl::Status Check(const SequenceInput& sequence) const override;
  absl::Status Add(std::span<const SequenceInput> sequences) override;
  bool encoding() const override { return cache_.encoding(); }
  absl::StatusOr<std::vector<SequenceEvent>> Step() override;
  void Release(SequenceId id) override;
  int sequences() const override { return static_cast<int>(running_.size()); }
  int rows_in_use() const override { return slots_.used(); }

  absl::Status WarmUp();
  // Moves the searches that the device supports to the device (device_decoder.h). Call it before
  // the first Add. Throws as DeviceDecoder::Prepare.
  void SearchOnDevice(const std::string& no_graphs);

 private:
  RunningSequence StartSequence(SequenceInput input);
  std::optional<OutputRows> OutputsFor(const SequenceInput& sequence);
  void StepDecoders();
  // The most rows of the next steps, also of `added`, and their logits.
  std::pair<int64_t, int64_t> StepSize(std::span<const RunningSequence> added) const;
  std::vector<SequenceEvent> TakeEvents();
  void SetPaused(SequenceId id, bool paused) override;
  // Medians of some calls and steps, for EngineInfo::encoder_cost.
  absl::StatusOr<double> EncodeSeconds(int sources, int tokens);
  absl::StatusOr<double> StepSeconds();
  absl::Status MeasureEncoder();

  DecoderContext context_;
  std::optional<Shortlist> shortlist_;
  FreeList slots_;
  EncoderCache cache_;
  HostDecoder host_;
  std::unique_ptr<DeviceDecoder> device_;  // null if only the host searches
  std::vector<RunningSequence> running_;   // in the order of Add
  uint64_t ever_added_ = 0;
};

}  // namespace linnet::model
