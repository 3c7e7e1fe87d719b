#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "model/ops/beam_search.h"
#include "model/ops/graph.h"
#include "model/runtime/engine.h"
#include "model/torch/device_event.h"
#include "model/torch/scripted_model.h"

namespace linnet::model {

// One sequence in a step of the device.
struct DeviceSequence {
  const BeamSearch* search;  // host copy of the search, read for forced tokens only
  const SearchOptions* options;
  int position;  // steps launched before this one, collected or not
  int source_tokens;
  std::span<const int32_t> slots, blocks;
};

// Thrown if a step cannot be recorded as a graph.
class GraphsFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Runs decoder steps with beam search on the device (ops/beam_search.h), one step ahead of the
// host.
//
// Launch enqueues a step and returns at once; Wait returns the record of the oldest in-flight step.
// The device stays busy if the next step is launched before the previous one is collected, since a
// step needs only values that the host knows beforehand. A step is one copy to the device, the
// plan; one graph, or single kernels where no graph has that many rows; and one copy back, the
// record.
//
// Rows are padded to the next size for which a graph was recorded. Tests run it on the CPU, where
// it has no graphs and streams. ScriptedEngine owns it; not thread-safe.
class DeviceDecoder {
 public:
  // Max number of in-flight steps.
  static constexpr int kMaxInFlight = 2;

  // `model`, `encoder_cache` and `state` must outlive it. With `one_size` every step has the max
  // number of rows.
  DeviceDecoder(ScriptedModel& model, const EngineInfo& info, int reach, int row_blocks,
                const std::vector<at::Tensor>& encoder_cache, const std::vector<at::Tensor>& state,
                bool one_size);

  ~DeviceDecoder();
  DeviceDecoder(const DeviceDecoder&) = delete;
  DeviceDecoder& operator=(const DeviceDecoder&) = delete;

  // True if the device can search this sequence. It does not support sampling, constraints, and
  // beams above ops::kMaxBeam.
  static bool Supports(const SequenceInput& sequence);

  // Runs an empty step of every size and records it as a graph, unless `no_graphs` gives a reason
  // not to record. Throws GraphsFailed if recording fails; the object must then be destroyed, since
  // the allocator keeps its recording state.
  void Prepare(const std::string& no_graphs);
  // "25 graphs", or the reason why there are none.
  const std::string& graphs() const { return graphs_summary_; }

  // Requires in_flight() < kMaxInFlight, and distinct slots, at most as many as the engine has
  // rows.
  void Launch(std::span<const DeviceSequence> sequences);
  int in_flight() const { return static_cast<int>(launched_ - collected_); }
  // Collects the oldest step: one record per slot of each sequence, in order. Valid until the next
  // but one Launch.
  std::span<const ops::BeamRecord> Wait();
  // Waits for the steps in flight and drops their records; for use after a failure, which cannot be
  // attributed to one step. Never throws.
  void Discard();

  const c10::Stream& stream() const { return stream_; }

 private:
  // Host buffers of a step. There are two: one is filled while the device may still read the other.
  struct Buffers {
    at::Tensor plan, record;  // pinned
    DeviceEvent done;
    int rows = 0;
  };

  void WaitForDevice() const;
  void Fill(std::span<const DeviceSequence> sequences, int size, at::Tensor& plan) const;
  void Run(int size);

  ScriptedModel& model_;
  const std::vector<at::Tensor>&encoder_cache_, &state_;
  int max_rows_, row_blocks_;
  std::vector<int> sizes_;  // ascending
  std::vector<int64_t> special_;
  c10::Stream stream_;
  std::vector<at::Tensor> tables_, grammar_;
  at::Tensor plan_, record_;  // on the device, of the max size; smaller steps use their first rows
  std::unique_ptr<ops::GraphRecorder> recorder_;
  std::map<int, std::unique_ptr<ops::Graph>> graphs_;  // by size
  std::string graphs_summary_ = "not prepared";
  std::array<Buffers, kMaxInFlight> buffers_;
  int64_t launched_ = 0, collected_ = 0;
};

// The automaton in the form of ops/beam_search.h; empty for null.
std::vector<at::Tensor> GrammarTensors(const TokenGrammar* grammar, at::Device device);

// Applies a sequence's part of a record to its search. Returns InternalError if the search failed.
absl::Status FollowRecord(std::span<const ops::BeamRecord> record, BeamSearch& search);

// The sizes of steps: 2 … 8 rows, then four sizes per octave, and `max` as the last one. There is
// no size of one row: its products are not gemms, so cuBLASLt could not fuse their epilogues.
std::vector<int> StepSizes(int max);

}  // namespace linnet::model
