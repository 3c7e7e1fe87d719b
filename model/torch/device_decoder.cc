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
      // A history holds the start token, and the end behind the longest target.
      tables_(
          ops::NewBeamTables(info.rows, reach, info.limits.max_target_tokens + 2, model.device())),
      grammar_(GrammarTensors(info.grammar.get(), model.device())),
      slots_{Slot{{}, {}, Mark(model.device())}, Slot{{}, {}, Mark(model.device())}} {
  const std::array<int64_t, 2> plan = {max_rows_, ops::kPlanWords + row_blocks_};
  const std::array<int64_t, 2> record = {max_rows_, ops::kRecordWords};
  const auto ints = at::TensorOptions(model.device()).dtype(at::kInt);
  plan_ = at::zeros(plan, ints);
  record_ = at::zeros(record, ints);
  for (Slot& slot : slots_) {
    slot.plan = PinnedZeros(plan, at::kInt, model.device());
    slot.record = PinnedZeros(record, at::kInt, model.device());
  }
  WaitForDevice();  // all of this, and the model, was made on another stream
}

// What is in flight writes to memory that is about to be somebody else's.
DeviceDecoder::~DeviceDecoder() { Discard(); }

void DeviceDecoder::WaitForDevice() const {
  const at::Device device = stream_.device();
  if (device.is_cpu()) return;
  c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

bool DeviceDecoder::Takes(const SequenceInput& sequence) {
  return !sequence.options.sampling() && sequence.constraints.empty() &&
         RowsOf(sequence) <= ops::kMaxBeam;
}

void DeviceDecoder::Prepare(const std::string& no_graphs) {
  const c10::StreamGuard guard(stream_);
  recorder_ = no_graphs.empty() ? ops::NewGraphRecorder() : nullptr;
  graphs_said_ = "no graphs: " + (no_graphs.empty() ? "not on this device" : no_graphs);
  // The largest first, so that the smaller ones find its memory in the pool.
  std::vector<int> sizes = sizes_;
  if (recorder_ == nullptr) sizes = {max_rows_};
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
    Fill({}, *size, slots_[0].plan);
    plan_.copy_(slots_[0].plan);
    Run(*size);
    if (recorder_ == nullptr) continue;
    WaitForDevice();
    try {
      graphs_[*size] = recorder_->Record([&] { Run(*size); });
      graphs_said_ = absl::StrCat(graphs_.size(), " graphs");
    } catch (const std::exception& error) {
      const std::string doing = absl::StrCat("recording a step of ", *size, " rows failed");
      throw GraphsFailed(std::string(StatusOfException(doing, error).message()));
    }
  }
}

void DeviceDecoder::Fill(std::span<const DeviceRow> turns, int size, at::Tensor& plan) const {
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
  for (int number = 0; number < std::ssize(turns); ++number) {
    const DeviceRow& turn = turns[number];
    ops::BeamPlan& own = at(number);
    own.beam = static_cast<int32_t>(turn.slots.size());
    own.first_row = row;
    own.position = turn.position;
    own.forced = turn.search->forced_after(turn.position);
    own.may_end = turn.position >= turn.options->min_target_tokens;
    own.ngram = turn.options->no_repeat_ngram_size;
    own.unknown_penalty = turn.options->unknown_penalty;
    own.temperature = turn.options->temperature;
    own.source_tokens = turn.source_tokens;
    own.left = turn.options->max_target_tokens - turn.position - 1;
    std::copy(turn.slots.begin(), turn.slots.end(), own.slots);
    // What lies behind the source is not read.
    std::copy(turn.blocks.begin(), turn.blocks.end(), rows + number * words + ops::kPlanWords);
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

void DeviceDecoder::Launch(std::span<const DeviceRow> turns) {
  assert(in_flight() < kMaxInFlight);
  const c10::StreamGuard guard(stream_);
  Slot& slot = slots_[launched_ % kMaxInFlight];
  slot.rows = 0;
  for (const DeviceRow& turn : turns) slot.rows += static_cast<int>(turn.slots.size());
  const int size = *std::lower_bound(sizes_.begin(), sizes_.end(), slot.rows);
  Fill(turns, size, slot.plan);
  plan_.narrow(0, 0, size).copy_(slot.plan.narrow(0, 0, size), /*non_blocking=*/true);
  if (const auto graph = graphs_.find(size); graph != graphs_.end()) {
    graph->second->Launch();
  } else {
    Run(size);
  }
  slot.record.narrow(0, 0, size).copy_(record_.narrow(0, 0, size), /*non_blocking=*/true);
  slot.done.Set(stream_);
  ++launched_;
}

std::span<const ops::BeamRecord> DeviceDecoder::Wait() {
  assert(in_flight() > 0);
  const Slot& slot = slots_[collected_++ % kMaxInFlight];
  slot.done.Wait();
  return {reinterpret_cast<const ops::BeamRecord*>(slot.record.const_data_ptr<int32_t>()),
          static_cast<size_t>(slot.rows)};
}

void DeviceDecoder::Discard() {
  try {
    WaitForDevice();
  } catch (const std::exception&) {
    // A device that has failed has stopped.
  }
  collected_ = launched_;
}

}  // namespace linnet::model
