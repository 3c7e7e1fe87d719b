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

// One sequence's part in a step.
struct DeviceRow {
  const BeamSearch* search;  // that follows; nothing but what is forced is asked of it
  const SearchOptions* options;
  int position;  // steps launched before this one, heard of or not
  int source_tokens;
  std::span<const int32_t> slots, blocks;
};

// A step could not be recorded as a graph.
class GraphsFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Decoder steps whose searches run beside the model (ops/beam_search.h).
//
// Launch gives the device a step and returns at once; Wait brings the record of the oldest step
// that was not waited for. Whoever launches a step before he waits for the one before keeps the
// device busy: a step needs nothing of the host that the host does not know beforehand. A step is
// one copy in, the plan; one graph, or its kernels one by one where there is no graph for that many
// rows; and one copy out, the record.
//
// Rows are filled up to the next size for which a graph was recorded. Works on the CPU as well,
// without graphs and streams: by that it is tested.
class DeviceDecoder {
 public:
  // Steps that may be launched and not waited for.
  static constexpr int kMaxInFlight = 2;

  // `model`, `memory` and `state` outlive it. `one_size`: every step has the rows of the largest.
  DeviceDecoder(ScriptedModel& model, const EngineInfo& info, int reach, int row_blocks,
                const std::vector<at::Tensor>& encoder_cache, const std::vector<at::Tensor>& state,
                bool one_size);

  ~DeviceDecoder();
  DeviceDecoder(const DeviceDecoder&) = delete;
  DeviceDecoder& operator=(const DeviceDecoder&) = delete;

  // Is the sequence's target searched here? Not if it is drawn, if it has constraints, or if its
  // beam is wider than ops::kMaxBeam.
  static bool Takes(const SequenceInput& sequence);

  // Runs a step of every size with nobody in it and records it, unless `no_graphs` says why not.
  // Throws GraphsFailed where recording fails: what the allocator keeps for a recording is then
  // left open, so that this object is of no further use.
  void Prepare(const std::string& no_graphs);
  // "25 graphs", or why there are none.
  const std::string& graphs() const { return graphs_said_; }

  // In flight are less than kMaxInFlight; the turns' lanes are different and no more than rows.
  void Launch(std::span<const DeviceRow> turns);
  int in_flight() const { return static_cast<int>(launched_ - collected_); }
  // A record for each lane of each turn, in their order. Valid until the next but one Launch.
  std::span<const ops::BeamRecord> Wait();
  // Forgets the steps in flight, once the device is through with them: after a failure, of which
  // the host no longer knows which step it belongs to. Never throws.
  void Discard();

  const c10::Stream& stream() const { return stream_; }

 private:
  // What travels, by turns: one is filled while the device may still read the other.
  struct Slot {
    at::Tensor plan, record;  // pinned
    Mark done;
    int rows = 0;
  };

  void WaitForDevice() const;
  void Fill(std::span<const DeviceRow> turns, int size, at::Tensor& plan) const;
  void Run(int size);

  ScriptedModel& model_;
  const std::vector<at::Tensor>&encoder_cache_, &state_;
  int max_rows_, row_blocks_;
  std::vector<int> sizes_;  // ascending
  std::vector<int64_t> special_;
  c10::Stream stream_;
  std::vector<at::Tensor> tables_, grammar_;
  at::Tensor plan_, record_;  // on the device, of the largest size; smaller steps use their front
  std::unique_ptr<ops::GraphRecorder> recorder_;
  std::map<int, std::unique_ptr<ops::Graph>> graphs_;  // by size
  std::string graphs_said_ = "not prepared";
  std::array<Slot, kMaxInFlight> slots_;
  int64_t launched_ = 0, collected_ = 0;
};

// The automaton as ops/beam_search.h takes it; nothing where there is none.
std::vector<at::Tensor> GrammarTensors(const TokenGrammar* grammar, at::Device device);

// Lets the search follow its part of a record. InternalError if it has failed.
absl::Status FollowRecord(std::span<const ops::BeamRecord> record, BeamSearch& search);

// 2 … 8 rows and from there four sizes per octave, up to `most`, which is the last one. A product
// with one row is not a matrix's: it would miss the epilogues of cuBLASLt.
std::vector<int> StepSizes(int max);

}  // namespace linnet::model
