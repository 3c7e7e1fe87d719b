#include "model/torch/torch_engine.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/ops/parallel.h"
#include "model/torch/ancestry.h"
#include "model/torch/border.h"
#include "model/torch/compute_type.h"
#include "model/torch/device.h"
#include "model/torch/free_list.h"
#include "model/torch/scripted_model.h"
#include "model/torch/step_inputs.h"
#include "model/torch/step_logits.h"
#include "model/torch/usable_cores.h"

namespace linnet::model {
namespace {

// Tokens in a block of encoder memory: what a source wastes is half of it on average.
constexpr int kBlockTokens = 16;

// A row's product must not depend on how many rows are with it. Our own (ops/linear.h) do not;
// those of libraries, for bfloat16 and for bundles that cannot be packed, may. Measured on MKL's
// float32 (AVX2 and AVX512, 1 to 8 threads): rows come out bit-identical for every multiple of 4
// rows, and at other counts below 4 per thread they do not. So there all products have a multiple
// of 4 rows, two threads' worth at least. bfloat16 was the same at any count.
constexpr int kRowGrain = 4;

int RoundUp(int64_t value, int grain) {
  return static_cast<int>((value + grain - 1) / grain * grain);
}

int BlocksFor(size_t tokens) {
  return RoundUp(static_cast<int64_t>(tokens), kBlockTokens) / kBlockTokens;
}

// A sequence in its rows.
struct Seated {
  SequenceId id;
  SearchOptions options;
  BeamSearch search;
  int source_tokens;
  FreeList::Lease lanes;   // beam_size of them; hypothesis i lives in the i-th
  FreeList::Lease blocks;  // of the encoder memory
  bool report_stable;
  int first_row = 0;         // in the present step
  absl::Status status = {};  // of the present step
};

class TorchEngine final : public Engine {
 public:
  // Throws what torch throws.
  TorchEngine(ScriptedModel model, EngineInfo info, bool mask_eos);

  const EngineInfo& info() const override { return info_; }
  bool HasRoom(std::span<const SequenceInput> sequences) const override;
  absl::Status Check(const SequenceInput& sequence) const override;
  absl::Status Seat(std::span<const SequenceInput> sequences) override;
  absl::StatusOr<std::vector<SequenceEvent>> Step() override;
  void Release(SequenceId id) override;
  int sequences() const override { return static_cast<int>(seated_.size()); }
  int rows_in_use() const override { return lanes_.used(); }

  absl::Status WarmUp();

 private:
  void Encode(std::span<const SequenceInput> sequences, std::span<const Seated> seats);
  StepLogits ComputeLogits();
  void AdvanceSearches(const StepLogits& logits);
  std::vector<SequenceEvent> TakeEvents();

  ScriptedModel model_;
  EngineInfo info_;
  bool mask_eos_;
  FreeList lanes_;
  FreeList blocks_;
  std::vector<at::Tensor> state_;  // per layer, [K, lanes, C]
  // Per layer, [blocks + 1, kBlockTokens, 2, d]; the last block takes the padding.
  std::vector<at::Tensor> memory_;
  Ancestry ancestry_;
  StepInputs inputs_;
  std::vector<Seated> seated_;  // in order of seating
};

int WidestWindow(const std::vector<at::Tensor>& state) {
  int64_t widest = 1;
  for (const at::Tensor& window : state) {
    if (window.dim() == 0) throw std::runtime_error("new_state gives a tensor without dimensions");
    widest = std::max(widest, window.size(0));
  }
  return static_cast<int>(widest);
}

TorchEngine::TorchEngine(ScriptedModel model, EngineInfo info, bool mask_eos)
    : model_(std::move(model)),
      info_(std::move(info)),
      mask_eos_(mask_eos),
      lanes_(info_.rows),
      blocks_(static_cast<int>(info_.memory_tokens / kBlockTokens)),
      state_(model_.NewState(info_.rows)),
      memory_(model_.NewMemory(blocks_.size() + 1, kBlockTokens)),
      ancestry_(info_.rows, WidestWindow(state_)),
      inputs_(ancestry_.reach()) {}

bool TorchEngine::HasRoom(std::span<const SequenceInput> sequences) const {
  int64_t lanes = 0, blocks = 0;
  for (const SequenceInput& sequence : sequences) {
    lanes += RowsOf(sequence);
    blocks += BlocksFor(sequence.source.size());
  }
  return lanes <= lanes_.free() && blocks <= blocks_.free();
}

absl::Status TorchEngine::Check(const SequenceInput& sequence) const {
  return CheckSequence(sequence, info_);
}

absl::Status TorchEngine::Seat(std::span<const SequenceInput> sequences) {
  if (sequences.empty()) return absl::OkStatus();
  if (!HasRoom(sequences)) {
    return absl::InternalError(absl::StrCat(
        sequences.size(), " sequences were to be seated, but there is no room: ", lanes_.free(),
        " rows and ", blocks_.free() * kBlockTokens, " tokens of memory are free"));
  }
  return AtTheBorder("encoding failed", [&] {
    std::vector<Seated> seats;
    for (SequenceInput input : sequences) {
      if (mask_eos_) input.options.min_target_tokens = input.options.max_target_tokens;
      seats.push_back({.id = input.id,
                       .options = input.options,
                       .search = StartSearch(input, info_.special),
                       .source_tokens = static_cast<int>(input.source.size()),
                       .lanes = lanes_.Take(RowsOf(input)),
                       .blocks = blocks_.Take(BlocksFor(input.source.size())),
                       .report_stable = input.report_stable});
      ancestry_.Start(seats.back().lanes.numbers());
    }
    Encode(sequences, seats);
    std::move(seats.begin(), seats.end(), std::back_inserter(seated_));
    return absl::OkStatus();
  });
}

void TorchEngine::Encode(std::span<const SequenceInput> sequences, std::span<const Seated> seats) {
  size_t longest = 0;
  for (const SequenceInput& input : sequences) longest = std::max(longest, input.source.size());
  const int64_t batch = std::ssize(sequences);
  const int64_t width = RoundUp(static_cast<int64_t>(longest), 2 * kRowGrain);
  at::Tensor source = at::full({batch, width}, int64_t{info_.special.pad}, at::kLong);
  at::Tensor lengths = at::empty({batch}, at::kInt);
  at::Tensor places = at::full({batch, width}, int64_t{blocks_.size()} * kBlockTokens, at::kLong);
  for (int64_t b = 0; b < batch; ++b) {
    const auto& tokens = sequences[b].source;
    const auto blocks = seats[b].blocks.numbers();
    std::copy(tokens.begin(), tokens.end(), source.mutable_data_ptr<int64_t>() + b * width);
    lengths.mutable_data_ptr<int32_t>()[b] = static_cast<int32_t>(tokens.size());
    int64_t* place = places.mutable_data_ptr<int64_t>() + b * width;
    for (size_t s = 0; s < tokens.size(); ++s) {
      place[s] = int64_t{blocks[s / kBlockTokens]} * kBlockTokens + s % kBlockTokens;
    }
  }
  const std::vector<at::Tensor> encoded = model_.Encode(source, lengths);
  if (encoded.size() != memory_.size()) {
    throw std::runtime_error(absl::StrCat("encode gives ", encoded.size(),
                                          " tensors, new_memory gives ", memory_.size()));
  }
  places = places.flatten().to(model_.device());
  for (size_t layer = 0; layer < memory_.size(); ++layer) {
    memory_[layer].flatten(0, 1).index_copy_(0, places, encoded[layer].flatten(0, 1));
  }
}

StepLogits TorchEngine::ComputeLogits() {
  int most_blocks = 1;
  for (const Seated& seat : seated_) {
    most_blocks = std::max(most_blocks, static_cast<int>(seat.blocks.numbers().size()));
  }
  inputs_.Start(most_blocks);
  for (Seated& seat : seated_) {
    seat.first_row = inputs_.rows();
    const auto tokens = seat.search.tokens();
    for (size_t i = 0; i < tokens.size(); ++i) {
      RowNeed need = seat.search.need(static_cast<int>(i));
      need.best = std::min(need.best, info_.vocabulary_size);
      inputs_.Add(tokens[i], seat.search.steps(), ancestry_.of(seat.lanes.numbers()[i]),
                  seat.blocks.numbers(), seat.source_tokens, need, seat.options.temperature);
    }
  }
  const int rows = inputs_.rows();
  if (!model_.rows_alone()) {
    inputs_.AddIdle(std::max(RoundUp(rows, kRowGrain), kRowGrain * std::min(info_.threads, 2)) -
                    rows);
  }
  return StepLogits(model_, inputs_, rows, info_.vocabulary_size, memory_, state_);
}

void TorchEngine::AdvanceSearches(const StepLogits& logits) {
  const int64_t values = logits.rows().front().logits.size();
  ops::ParallelFor(
      std::ssize(seated_), 4 * std::ssize(logits.rows()) / std::ssize(seated_) * (values + 256),
      [&](int64_t begin, int64_t end) {
        for (Seated& seat : std::span(seated_).subspan(begin, end - begin)) {
          seat.status =
              seat.search.Advance(logits.rows().subspan(seat.first_row, seat.search.live()));
        }
      });
}

std::vector<SequenceEvent> TorchEngine::TakeEvents() {
  std::vector<SequenceEvent> events;
  for (Seated& seat : seated_) {
    SequenceEvent& event = events.emplace_back();
    event.id = seat.id;
    event.target_tokens = seat.search.steps();
    event.status = seat.status;
    event.finished = !seat.status.ok() || seat.search.finished();
    if (!event.finished) {
      ancestry_.Descend(seat.lanes.numbers(), seat.search.parents());
      if (seat.report_stable) event.stable = seat.search.StablePrefix();
    } else if (seat.status.ok()) {
      event.hypotheses = seat.search.Results();
    }
  }
  std::erase_if(seated_,
                [](const Seated& seat) { return !seat.status.ok() || seat.search.finished(); });
  return events;
}

absl::StatusOr<std::vector<SequenceEvent>> TorchEngine::Step() {
  std::vector<SequenceEvent> events;
  if (seated_.empty()) return events;
  absl::Status status = AtTheBorder("a decoder step failed", [&] {
    AdvanceSearches(ComputeLogits());
    events = TakeEvents();
    return absl::OkStatus();
  });
  if (!status.ok()) {
    seated_.clear();
    return status;
  }
  return events;
}

void TorchEngine::Release(SequenceId id) {
  std::erase_if(seated_, [id](const Seated& seat) { return seat.id == id; });
}

// A few steps before the first request: torch makes its thread pool and its caches, and a module
// that breaks the contract is found out. Drawn tokens need whole rows of logits, searched ones the
// best of them. What is left in the lanes and in the memory hurts nobody.
absl::Status TorchEngine::WarmUp() {
  SequenceInput input;
  input.source = {info_.special.unk, info_.special.eos};
  input.options.max_target_tokens = std::min(4, info_.limits.max_target_tokens);
  input.options.min_target_tokens = input.options.max_target_tokens;
  input.options.beam_size = std::min(5, info_.limits.max_beam_size);
  for (const bool drawn : {true, false}) {
    input.options.seed = drawn ? std::optional<uint64_t>(0) : std::nullopt;
    if (absl::Status status = Check(input); !status.ok()) return status;
    if (absl::Status status = Seat({&input, 1}); !status.ok()) return status;
    while (!seated_.empty()) {
      absl::StatusOr<std::vector<SequenceEvent>> events = Step();
      if (!events.ok()) return events.status();
      if (!events->front().status.ok()) return events->front().status;
    }
  }
  return absl::OkStatus();
}

EngineInfo MakeInfo(const Bundle& bundle, const TorchEngineOptions& options, at::Device device,
                    ComputeType compute) {
  EngineInfo info;
  info.device = device.str();
  info.compute_type = ComputeTypeName(compute);
  info.threads = options.threads > 0 ? options.threads : UsableCores();
  info.rows = options.rows;
  info.memory_tokens = RoundUp(options.memory_tokens, kBlockTokens);
  info.vocabulary_size = bundle.manifest.vocabulary().size();
  info.source_vocabulary_size = bundle.source_vocabulary_size();
  info.special = bundle.special_tokens();
  info.limits.max_beam_size = std::min(info.limits.max_beam_size, info.rows);
  info.limits.max_source_tokens = bundle.manifest.limits().max_source_tokens();
  info.limits.max_target_tokens = bundle.manifest.limits().max_target_tokens();
  return info;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> MakeTorchEngine(const Bundle& bundle,
                                                        const TorchEngineOptions& options) {
  constexpr int kMostRows = 1 << 16;
  constexpr int64_t kMostMemoryTokens = int64_t{1} << 28;
  const int max_source_tokens = bundle.manifest.limits().max_source_tokens();
  if (options.threads < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads is ", options.threads, ", it must be at least 0"));
  }
  if (options.rows < 1 || options.rows > kMostRows) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows is ", options.rows, ", it must be between 1 and ", kMostRows));
  }
  if (options.memory_tokens < max_source_tokens || options.memory_tokens > kMostMemoryTokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        "memory_tokens is ", options.memory_tokens, ", it must be between ", max_source_tokens,
        " (the longest source of this model) and ", kMostMemoryTokens));
  }
  const absl::StatusOr<at::Device> device = OpenDevice(options.device);
  if (!device.ok()) return device.status();

  std::unique_ptr<TorchEngine> engine;
  absl::Status status =
      AtTheBorder(absl::StrCat("cannot load ", bundle.model_file().string()), [&] {
        absl::StatusOr<ScriptedModel> model =
            ScriptedModel::Load(bundle.model_file(), *device, options.compute);
        if (!model.ok()) return model.status();
        EngineInfo info = MakeInfo(bundle, options, *device, model->compute());
        at::set_num_threads(info.threads);  // of this thread's parallel regions
        engine =
            std::make_unique<TorchEngine>(*std::move(model), std::move(info), options.mask_eos);
        return engine->WarmUp();
      });
  if (absl::IsResourceExhausted(status)) return status;
  if (!status.ok()) return absl::FailedPreconditionError(status.message());
  return engine;
}

}  // namespace linnet::model
