#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/runtime/engine.h"
#include "model/torch/decoding/decoder_context.h"
#include "model/torch/decoding/running_sequence.h"
#include "model/torch/encoder/encoder_cache.h"
#include "model/torch/module/device_event.h"
#include "model/torch/module/recorded_work.h"

namespace linnet::model {

// Decodes sequences with beam search on the device (ops/search/beam_search.h), one step ahead of
// the host.
//
// Launch enqueues a step and returns at once; Collect waits for the oldest in-flight step and lets
// the searches on the host follow it. The device stays busy if the next step is launched before the
// previous one is collected, since a step needs only values that the host knows beforehand. A step
// is one copy to the device, the plan; one graph, or single kernels where no graph has that many
// rows; and one copy back, the record.
//
// Rows are padded to the next size for which a graph was recorded. Tests run it on the CPU, where
// it has no graphs and streams. ScriptedEngine owns it; not thread-safe, the engine's thread calls
// it.
class DeviceDecoder {
 public:
  // Max number of in-flight steps.
  static constexpr int kMaxInFlight = 2;

  // `context` and `cache` must outlive it. Throws c10::Error.
  DeviceDecoder(DecoderContext& context, const EncoderCache& cache);
  ~DeviceDecoder();
  DeviceDecoder(const DeviceDecoder&) = delete;
  DeviceDecoder& operator=(const DeviceDecoder&) = delete;

  // True if the device can make the steps of a search with so many rows: at most ops::kMaxBeam.
  static bool Supports(const Search& search, int64_t rows);

  // See RecordedWork::Prepare.
  void Prepare(const std::string& no_graphs);
  const std::string& graphs() const { return steps_of_size_.summary(); }

  // Launches a step of all its unfinished searches that run and whose sources are encoded. Sources
  // that are still being encoded wait for a later step, unless no other sequence is ready; a
  // sequence whose source could not be encoded gets the status. Returns false if there is nothing
  // to launch. Requires in_flight() < kMaxInFlight. After an exception the caller must Discard and
  // remove the sequences.
  bool Launch(std::span<RunningSequence> running);
  int in_flight() const { return static_cast<int>(launched_ - collected_); }
  // Waits for the oldest step and applies its record to the searches, skipping sequences that are
  // no longer in `running`. Requires in_flight() > 0.
  void Collect(std::span<RunningSequence> running);
  // Waits for the steps in flight and drops their records; for use after a failure, which cannot be
  // attributed to one step. Never throws.
  void Discard();

  const c10::Stream& stream() const { return stream_; }

  // Entries of a hypothesis's history, at most ops::kMaxHistory: the start token, language tokens,
  // the longest target and eos.
  static int HistoryEntries(const EngineInfo& info) {
    return info.limits.max_target_tokens + info.max_language_tokens + 2;
  }

 private:
  // A sequence in an in-flight step.
  struct InFlightSequence {
    uint64_t number;
    int rows;
  };
  // An in-flight step and its host buffers. There are two: one is filled while the device may still
  // read the other.
  struct InFlightStep {
    at::Tensor plan, record;  // pinned
    DeviceEvent done;
    std::vector<InFlightSequence> sequences = {};
  };

  // The sequences of the next step. Makes the step wait for the encoder where it must.
  std::vector<RunningSequence*> NextStep(std::span<RunningSequence> running) const;
  void Run(int size);

  DecoderContext& context_;
  const EncoderCache& cache_;
  int row_blocks_;  // blocks of the longest source
  std::vector<int64_t> special_;
  OwnStream stream_;
  std::vector<at::Tensor> tables_, grammar_;
  at::Tensor plan_, record_;  // on the device, of the max size; smaller steps use their first rows
  RecordedWork steps_of_size_;
  std::array<InFlightStep, kMaxInFlight> steps_;
  int64_t launched_ = 0, collected_ = 0;
};

// The sizes of steps: 2 … 8 rows, then four sizes per octave, and `max` as the last one. There is
// no size of one row: its products are not gemms, so cuBLASLt could not fuse their epilogues.
std::vector<int> StepSizes(int max);

}  // namespace linnet::model
