#include "model/torch/device_decoder.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cassert>
#include <exception>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/runtime/search/candidates.h"
#include "model/torch/catch_torch_errors.h"

namespace linnet::model {

std::vector<at::Tensor> GrammarTensors(const TokenGrammar* grammar, at::Device device) {
  if (grammar == nullptr) return {};
  const auto classes = grammar->classes();
  at::Tensor bytes = at::empty({std::ssize(classes)}, at::kByte);
  std::copy(classes.begin(), classes.end(), bytes.mutable_data_ptr<uint8_t>());
  const auto ints = [](const std::vector<int32_t>& values) {
    at::Tensor tensor = at::empty({std::ssize(values)}, at::kInt);
    std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<int32_t>());
    return tensor;
  };
  return {bytes.to(device),
          ints(TokenGrammar::Transitions()).view({TokenGrammar::kStates, -1}).to(device),
          ints(TokenGrammar::Tails()).to(device)};
}

std::vector<int> StepSizes(int max) {
  std::vector<int> sizes;
  for (int size = 2, gap = 1; size < max; size += gap) {
    sizes.push_back(size);
    if (size >= 8 * gap) gap *= 2;
  }
  sizes.push_back(max);
  return sizes;
}

absl::Status FollowRecord(std::span<const ops::BeamRecord> record, BeamSearch& search) {
  const ops::BeamEntry& news = record.front().ended;
  if (news.token == ops::kNoProbabilities) {
    return absl::InternalError(absl::StrCat("the model gave no probabilities at target token ",
                                            search.steps(), ": the normalizer of hypothesis ",
                                            news.parent, " is ", news.log_probability));
  }
  if (news.token == ops::kNothingPossible) {
    return absl::InternalError(
        absl::StrCat("no token is possible at target token ", search.steps(),
                     ": each is forbidden or has no finite log-probability"));
  }
  std::vector<Candidate> live, ended;
  const auto add = [](const ops::BeamEntry& entry, std::vector<Candidate>& entries) {
    if (entry.token < 0) return;
    entries.push_back({.sum = entry.sum,
                       .log_probability = entry.log_probability,
                       .parent = entry.parent,
                       .token = entry.token});
  };
  for (const ops::BeamRecord& row : record) {
    add(row.next, live);
    add(row.ended, ended);
  }
  search.Follow(live, ended);
  return absl::OkStatus();
}

DeviceDecoder::DeviceDecoder(ScriptedModel& model, const EngineInfo& info, int reach,
                             int row_blocks, const std::vector<at::Tensor>& encoder_cache,
                             const std::vector<at::Tensor>& state, bool one_size)
    : model_(model),
      encoder_cache_(encoder_cache),
      state_(state),
      max_rows_(info.rows),
      row_blocks_(row_blocks),
      sizes_(one_size ? std::vector<int>{info.rows} : StepSizes(info.rows)),
      special_({info.special.start, info.special.pad, info.special.eos, info.special.unk}),
      stream_(NewStream(model.device(), /*urgent=*/true)),
      // A history holds the start token, the longest target and eos.
      tables_(
          ops::NewBeamTables(info.rows, reach, info.limits.max_target_tokens + 2, model.device())),
      grammar_(GrammarTensors(info.grammar.get(), model.device())),
      buffers_{Buffers{{}, {}, DeviceEvent(model.device())},
               Buffers{{}, {}, DeviceEvent(model.device())}} {
  const std::array<int64_t, 2> plan = {max_rows_, ops::kPlanWords + row_blocks_};
  const std::array<int64_t, 2> record = {max_rows_, ops::kRecordWords};
  const auto ints = at::TensorOptions(model.device()).dtype(at::kInt);
  plan_ = at::zeros(plan, ints);
  record_ = at::zeros(record, ints);
  for (Buffers& buffers : buffers_) {
    buffers.plan = PinnedZeros(plan, at::kInt, model.device());
    buffers.record = PinnedZeros(record, at::kInt, model.device());
  }
  WaitForDevice();  // the tensors above, and the model, were created on another stream
}

// In-flight steps write to the tensors that are freed here.
DeviceDecoder::~DeviceDecoder() { Discard(); }

void DeviceDecoder::WaitForDevice() const {
  const at::Device device = stream_.device();
  if (device.is_cpu()) return;
  c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

bool DeviceDecoder::Supports(const SequenceInput& sequence) {
  return !sequence.options.sampling() && sequence.constraints.empty() &&
         RowsOf(sequence) <= ops::kMaxBeam;
}

void DeviceDecoder::Prepare(const std::string& no_graphs) {
  const c10::StreamGuard guard(stream_);
  recorder_ = no_graphs.empty() ? ops::NewGraphRecorder() : nullptr;
  graphs_summary_ = "no graphs: " + (no_graphs.empty() ? "not on this device" : no_graphs);
  // The largest first, so that the smaller ones reuse its memory in the pool.
  std::vector<int> sizes = sizes_;
  if (recorder_ == nullptr) sizes = {max_rows_};
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
    Fill({}, *size, buffers_[0].plan);
    plan_.copy_(buffers_[0].plan);
    Run(*size);
    if (recorder_ == nullptr) continue;
    WaitForDevice();
    try {
      graphs_[*size] = recorder_->Record([&] { Run(*size); });
      graphs_summary_ = absl::StrCat(graphs_.size(), " graphs");
    } catch (const std::exception& error) {
      const std::string doing = absl::StrCat("recording a step of ", *size, " rows failed");
      throw GraphsFailed(std::string(StatusOfException(doing, error).message()));
    }
  }
}

void DeviceDecoder::Fill(std::span<const DeviceSequence> sequences, int size,
                         at::Tensor& plan) const {
  const int64_t words = plan.size(1);
  int32_t* const rows = plan.mutable_data_ptr<int32_t>();
  const auto at = [&](int row) -> ops::BeamPlan& {
    return *reinterpret_cast<ops::BeamPlan*>(rows + row * words);
  };
  for (int row = 0; row < size; ++row) {
    at(row).search = -1;
    at(row).beam = 0;
  }
  int row = 0;
  for (int number = 0; number < std::ssize(sequences); ++number) {
    const DeviceSequence& sequence = sequences[number];
    ops::BeamPlan& own = at(number);
    own.beam = static_cast<int32_t>(sequence.slots.size());
    own.first_row = row;
    own.position = sequence.position;
    own.forced = sequence.search->forced_after(sequence.position);
    own.may_end = sequence.position >= sequence.options->min_target_tokens;
    own.ngram = sequence.options->no_repeat_ngram_size;
    own.unknown_penalty = sequence.options->unknown_penalty;
    own.temperature = sequence.options->temperature;
    own.source_tokens = sequence.source_tokens;
    own.left = sequence.options->max_target_tokens - sequence.position - 1;
    std::copy(sequence.slots.begin(), sequence.slots.end(), own.slots);
    // Entries after the source's blocks are not read.
    std::copy(sequence.blocks.begin(), sequence.blocks.end(),
              rows + number * words + ops::kPlanWords);
    for (int i = 0; i < own.beam; ++i) at(row++).search = number;
  }
}

void DeviceDecoder::Run(int size) {
  const at::Tensor plan = plan_.narrow(0, 0, size);
  at::Tensor record = record_.narrow(0, 0, size);
  const ops::StepRows rows = ops::CallBeamInputs(plan, tables_, special_, row_blocks_);
  at::Tensor logits = model_.Step({.tokens = rows.tokens,
                                   .positions = rows.positions,
                                   .backpointers = rows.backpointers,
                                   .blocks = rows.blocks,
                                   .source_lengths = rows.source_lengths,
                                   .counts = {},
                                   .also = {},
                                   .temperatures = {}},
                                  encoder_cache_, state_);
  if (logits.dim() != 2 || logits.size(0) != size) {
    throw std::runtime_error(
        absl::StrCat("step gives logits of another shape than [", size, " rows, tokens]"));
  }
  if (logits.is_cpu()) logits = logits.to(at::kFloat);
  ops::CallBeamStep(plan, logits.contiguous(), rows.backpointers, tables_, special_, grammar_,
                    record);
}

void DeviceDecoder::Launch(std::span<const DeviceSequence> sequences) {
  assert(in_flight() < kMaxInFlight);
  const c10::StreamGuard guard(stream_);
  Buffers& buffers = buffers_[launched_ % kMaxInFlight];
  buffers.rows = 0;
  for (const DeviceSequence& sequence : sequences)
    buffers.rows += static_cast<int>(sequence.slots.size());
  const int size = *std::lower_bound(sizes_.begin(), sizes_.end(), buffers.rows);
  Fill(sequences, size, buffers.plan);
  plan_.narrow(0, 0, size).copy_(buffers.plan.narrow(0, 0, size), /*non_blocking=*/true);
  if (const auto graph = graphs_.find(size); graph != graphs_.end()) {
    graph->second->Launch();
  } else {
    Run(size);
  }
  buffers.record.narrow(0, 0, size).copy_(record_.narrow(0, 0, size), /*non_blocking=*/true);
  buffers.done.Record(stream_);
  ++launched_;
}

std::span<const ops::BeamRecord> DeviceDecoder::Wait() {
  assert(in_flight() > 0);
  const Buffers& buffers = buffers_[collected_++ % kMaxInFlight];
  buffers.done.Wait();
  return {reinterpret_cast<const ops::BeamRecord*>(buffers.record.const_data_ptr<int32_t>()),
          static_cast<size_t>(buffers.rows)};
}

void DeviceDecoder::Discard() {
  try {
    WaitForDevice();
  } catch (const std::exception&) {
    // A failed device runs nothing more.
  }
  collected_ = launched_;
}

}  // namespace linnet::model
