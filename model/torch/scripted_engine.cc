#include "model/torch/scripted_engine.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/ops/cpu/parallel.h"
#include "model/torch/alignment_pass.h"
#include "model/torch/catch_torch_errors.h"
#include "model/torch/device_event.h"

namespace linnet::model {
namespace {

// The result of a row must not depend on the number of rows in the gemm. That holds for packed
// weights (ops/linear.h), but not for the libraries that compute bfloat16 and that a GPU uses.
// There steps are padded to a multiple of 4 rows, at least two threads' worth. Measured with MKL's
// float32 (AVX2 and AVX512, 1 to 8 threads): rows are bit-identical for every multiple of 4 rows,
// but not for other counts below 4 per thread. bfloat16 was bit-identical at any count.
constexpr int kRowGrain = 4;

int RoundUp(int64_t value, int grain) {
  return static_cast<int>((value + grain - 1) / grain * grain);
}

int BlocksFor(size_t tokens) {
  return RoundUp(static_cast<int64_t>(tokens), kBlockTokens) / kBlockTokens;
}

int DeepestState(const std::vector<at::Tensor>& state) {
  int64_t deepest = 1;
  for (const at::Tensor& layer : state) {
    if (layer.dim() == 0) throw std::runtime_error("new_state gives a tensor without dimensions");
    deepest = std::max(deepest, layer.size(0));
  }
  return static_cast<int>(deepest);
}

}  // namespace

// A running sequence with its slots and search. After the search it has no rows, except the row of
// its alignment pass.
struct ScriptedEngine::RunningSequence {
  SequenceId id;
  SearchOptions options;
  BeamSearch search;
  int source_tokens;
  FreeList::Lease slots;   // beam_size of them; hypothesis i is in the i-th
  FreeList::Lease blocks;  // of the encoder cache
  bool report_stable;
  bool align;
  std::optional<OutputRows> outputs;  // outputs of the shortlist; null: whole vocabulary
  std::optional<AlignmentPass> pass = std::nullopt;  // after the search, in the first slot
  // The search runs on the device (device_decoder.h); `search` follows one step late.
  bool on_device = false;
  uint64_t number = 0;                             // in the order of all sequences ever added
  int launched = 0;                                // steps launched on the device
  int max_steps = 0;                               // the search ends after at most that many
  std::shared_ptr<DeviceEvent> encoded = nullptr;  // null once the encoder is done
  int first_row = 0;                               // in the current step
  absl::Status status = {};                        // of the current step

  bool done() const {
    if (!status.ok()) return true;
    return pass.has_value() ? pass->finished() : search.finished();
  }
  bool searched_by_host() const { return !on_device && !search.finished(); }
};

// A sequence in an in-flight step of the device.
struct ScriptedEngine::InFlightSequence {
  uint64_t number;
  int rows;
};

ScriptedEngine::ScriptedEngine(ScriptedModel model, EngineInfo info,
                               const ScriptedEngineOptions& options,
                               std::optional<Shortlist> shortlist)
    : model_(std::move(model)),
      info_(std::move(info)),
      options_(options),
      shortlist_(std::move(shortlist)),
      slots_(info_.rows),
      blocks_(static_cast<int>(info_.encoder_cache_tokens / kBlockTokens)),
      state_(model_.NewState(info_.rows)),
      encoder_cache_(model_.NewEncoderCache(blocks_.size() + 1, kBlockTokens)),
      backpointers_(info_.rows, DeepestState(state_)),
      min_reach_(model_.MinBackpointers(backpointers_.reach())),
      encoder_stream_(c10::Stream::DEFAULT, model_.device()) {}

ScriptedEngine::~ScriptedEngine() = default;

void ScriptedEngine::SearchOnDevice(const std::string& no_graphs) {
  encoder_stream_ = NewStream(model_.device(), /*urgent=*/false);
  device_ = std::make_unique<DeviceDecoder>(model_, info_, backpointers_.reach(),
                                            BlocksFor(info_.limits.max_source_tokens),
                                            encoder_cache_, state_, options_.one_shape);
  device_->Prepare(no_graphs);
  info_.search = absl::StrCat("device, ", device_->graphs());
}

bool ScriptedEngine::HasRoom(std::span<const SequenceInput> sequences) const {
  int64_t slots = 0, blocks = 0;
  for (const SequenceInput& sequence : sequences) {
    slots += RowsOf(sequence);
    blocks += BlocksFor(sequence.source.size());
  }
  return slots <= slots_.free() && blocks <= blocks_.free();
}

int ScriptedEngine::sequences() const { return static_cast<int>(running_.size()); }

absl::Status ScriptedEngine::Check(const SequenceInput& sequence) const {
  return CheckSequence(sequence, info_);
}

absl::Status ScriptedEngine::Add(std::span<const SequenceInput> sequences) {
  if (sequences.empty()) return absl::OkStatus();
  if (!HasRoom(sequences)) {
    return absl::InternalError(absl::StrCat(
        "there is no room for ", sequences.size(), " sequences: ", slots_.free(), " rows and ",
        blocks_.free() * kBlockTokens, " tokens of the encoder cache are free"));
  }
  return CatchTorchErrors("encoding failed", [&] {
    std::vector<RunningSequence> added;
    for (SequenceInput input : sequences) {
      if (options_.mask_eos) input.options.min_target_tokens = input.options.max_target_tokens;
      added.push_back({.id = input.id,
                       .options = input.options,
                       .search = StartSearch(input, info_),
                       .source_tokens = static_cast<int>(input.source.size()),
                       .slots = slots_.Take(RowsOf(input)),
                       .blocks = blocks_.Take(BlocksFor(input.source.size())),
                       .report_stable = input.report_stable,
                       .align = input.align,
                       .outputs = OutputsFor(input)});
      RunningSequence& sequence = added.back();
      backpointers_.Start(sequence.slots.numbers());
      sequence.number = ++ever_added_;
      sequence.on_device = device_ && !sequence.outputs && DeviceDecoder::Supports(input);
      sequence.max_steps = input.target ? static_cast<int>(input.target->size())
                                        : input.options.max_target_tokens + 1;
    }
    const size_t together = options_.one_shape ? 1 : sequences.size();
    for (size_t i = 0; i < sequences.size(); i += together) {
      Encode(sequences.subspan(i, together), std::span(added).subspan(i, together));
    }
    const auto encoded = std::make_shared<DeviceEvent>(model_.device());
    encoded->Record(encoder_stream_);
    for (RunningSequence& sequence : added) sequence.encoded = encoded;
    std::move(added.begin(), added.end(), std::back_inserter(running_));
    return absl::OkStatus();
  });
}

// Sampling, constraints and given targets may use any token, so they get the whole vocabulary.
std::optional<OutputRows> ScriptedEngine::OutputsFor(const SequenceInput& sequence) {
  if (!shortlist_ || sequence.target || sequence.options.sampling() ||
      !sequence.constraints.empty()) {
    return std::nullopt;
  }
  std::vector<TokenId> others = sequence.prefix;
  if (info_.grammar != nullptr) {  // a multi-token character must be able to end
    const auto bytes = info_.grammar->byte_pieces();
    others.insert(others.end(), bytes.begin(), bytes.end());
  }
  return model_.OutputRowsFor(shortlist_->TokensFor(sequence.source, others));
}

void ScriptedEngine::Encode(std::span<const SequenceInput> sequences,
                            std::span<const RunningSequence> added) {
  const c10::StreamGuard guard(encoder_stream_);
  size_t longest = 0;
  for (const SequenceInput& input : sequences) longest = std::max(longest, input.source.size());
  const int64_t batch = std::ssize(sequences);
  const int64_t width = RoundUp(static_cast<int64_t>(longest), 2 * kRowGrain);
  at::Tensor source = at::full({batch, width}, int64_t{info_.special.pad}, at::kLong);
  at::Tensor lengths = at::empty({batch}, at::kInt);
  at::Tensor places = at::full({batch, width}, int64_t{blocks_.size()} * kBlockTokens, at::kLong);
  for (int64_t b = 0; b < batch; ++b) {
    const auto& tokens = sequences[b].source;
    const auto blocks = added[b].blocks.numbers();
    std::copy(tokens.begin(), tokens.end(), source.mutable_data_ptr<int64_t>() + b * width);
    lengths.mutable_data_ptr<int32_t>()[b] = static_cast<int32_t>(tokens.size());
    int64_t* place = places.mutable_data_ptr<int64_t>() + b * width;
    for (size_t s = 0; s < tokens.size(); ++s) {
      place[s] = int64_t{blocks[s / kBlockTokens]} * kBlockTokens + s % kBlockTokens;
    }
  }
  const std::vector<at::Tensor> encoded =
      model_.Encode(SendTo(model_.device(), source), SendTo(model_.device(), lengths));
  if (encoded.size() != encoder_cache_.size()) {
    throw std::runtime_error(absl::StrCat("encode gives ", encoded.size(),
                                          " tensors, new_encoder_cache gives ",
                                          encoder_cache_.size()));
  }
  places = SendTo(model_.device(), places.flatten());
  for (size_t layer = 0; layer < encoder_cache_.size(); ++layer) {
    encoder_cache_[layer].flatten(0, 1).index_copy_(0, places, encoded[layer].flatten(0, 1));
  }
}

void ScriptedEngine::AddIdleRows() {
  if (model_.packed()) return;
  const int rows = inputs_.rows();
  const int wanted = options_.one_shape ? std::max(info_.rows, rows)
                                        : std::max(RoundUp(rows, kRowGrain),
                                                   kRowGrain * std::min(info_.threads, 2));
  inputs_.AddIdle(wanted - rows);
}

// Columns of the backpointers in a step whose rows have taken at most `steps` steps: a state that
// holds whole targets is read only as far as the longest of the running targets.
int ScriptedEngine::ReachAt(int steps) const {
  return std::clamp(steps + 1, min_reach_, backpointers_.reach());
}

StepLogits ScriptedEngine::ComputeLogits(bool whole_rows) {
  int max_blocks = 1, max_steps = 0;
  for (const RunningSequence& sequence : running_) {
    max_blocks = std::max(max_blocks, static_cast<int>(sequence.blocks.numbers().size()));
    max_steps = std::max(max_steps, sequence.search.steps());
  }
  inputs_.Start(max_blocks, ReachAt(max_steps));
  std::vector<NarrowRows> narrow;
  for (RunningSequence& sequence : running_) {
    if (!sequence.searched_by_host()) continue;
    sequence.first_row = inputs_.rows();
    const auto tokens = sequence.search.tokens();
    if (sequence.outputs && !tokens.empty()) {
      narrow.push_back({sequence.first_row, static_cast<int>(tokens.size()), &*sequence.outputs});
    }
    for (size_t i = 0; i < tokens.size(); ++i) {
      RowNeed need = sequence.search.need(static_cast<int>(i));
      if (whole_rows) need = {.best = info_.vocabulary_size, .all = true};
      need.best = std::min(need.best, info_.vocabulary_size);
      inputs_.Add(tokens[i], sequence.search.steps(), backpointers_.of(sequence.slots.numbers()[i]),
                  sequence.blocks.numbers(), sequence.source_tokens, need,
                  sequence.options.temperature);
    }
  }
  const int rows = inputs_.rows();
  AddIdleRows();
  return StepLogits(model_, inputs_, rows, info_.vocabulary_size, encoder_cache_, state_, narrow);
}

bool ScriptedEngine::Suffices(const StepLogits& logits) const {
  return std::ranges::all_of(running_, [&](const RunningSequence& sequence) {
    if (!sequence.searched_by_host()) return true;
    for (int i = 0; i < sequence.search.live(); ++i) {
      if (!sequence.search.suffices(i, logits.rows()[sequence.first_row + i])) return false;
    }
    return true;
  });
}

void ScriptedEngine::AdvanceSearches(const StepLogits& logits) {
  const int64_t values = logits.rows().front().logits.size();
  ops::ParallelFor(
      std::ssize(running_), 4 * std::ssize(logits.rows()) / std::ssize(running_) * (values + 256),
      [&](int64_t begin, int64_t end) {
        for (RunningSequence& sequence : std::span(running_).subspan(begin, end - begin)) {
          if (!sequence.searched_by_host()) continue;
          sequence.status = sequence.search.Advance(
              logits.rows().subspan(sequence.first_row, sequence.search.live()));
        }
      });
}

void ScriptedEngine::AdvancePasses() {
  std::vector<AlignmentPass*> passes;
  int max_blocks = 1, max_steps = 0;
  for (RunningSequence& sequence : running_) {
    if (!sequence.pass.has_value()) continue;
    passes.push_back(&*sequence.pass);
    max_blocks = std::max(max_blocks, static_cast<int>(sequence.blocks.numbers().size()));
    max_steps = std::max(max_steps, sequence.pass->steps());
  }
  if (passes.empty()) return;
  inputs_.Start(max_blocks, ReachAt(max_steps));
  for (const RunningSequence& sequence : running_) {
    if (!sequence.pass.has_value()) continue;
    inputs_.Add(sequence.pass->input(), sequence.pass->steps(),
                backpointers_.of(sequence.slots.numbers()[0]), sequence.blocks.numbers(),
                sequence.source_tokens, RowNeed{}, 1.0f);
  }
  AddIdleRows();
  const at::Tensor weights =
      model_.Align(inputs_.tensors(), encoder_cache_, state_, options_.alignment_layer)
          .to(at::kCPU, at::kFloat)
          .contiguous();
  if (weights.dim() != 2 || weights.size(0) != inputs_.rows() ||
      weights.size(1) < max_blocks * kBlockTokens) {
    throw std::runtime_error(absl::StrCat("align gives weights of another shape than [",
                                          inputs_.rows(), " rows, ", max_blocks * kBlockTokens,
                                          " tokens]"));
  }
  const size_t width = weights.size(1);
  for (size_t i = 0; i < passes.size(); ++i)
    passes[i]->Take({weights.const_data_ptr<float>() + i * width, width});
}

// Launches a device step of all its unfinished searches whose sources are encoded. Sources that are
// still being encoded wait for a later step, unless no other sequence is ready. Returns false if
// there is nothing to launch.
bool ScriptedEngine::LaunchStep() {
  const auto continues = [](const RunningSequence& sequence) {
    return sequence.on_device && !sequence.search.finished() &&
           sequence.launched < sequence.max_steps;
  };
  bool ready = false, waiting = false;
  for (RunningSequence& sequence : running_) {
    if (sequence.encoded && sequence.encoded->reached()) sequence.encoded = nullptr;
    if (sequence.encoded && !sequence.on_device) {
      sequence.encoded->Block(device_->stream());
      sequence.encoded = nullptr;
    }
    if (continues(sequence)) (sequence.encoded ? waiting : ready) = true;
  }
  if (!ready && !waiting) return false;
  std::vector<DeviceSequence> device_sequences;
  std::vector<InFlightSequence> step;
  for (RunningSequence& sequence : running_) {
    if (!continues(sequence) || (ready && sequence.encoded)) continue;
    if (sequence.encoded) sequence.encoded->Block(device_->stream());
    device_sequences.push_back({.search = &sequence.search,
                                .options = &sequence.options,
                                .position = sequence.launched++,
                                .source_tokens = sequence.source_tokens,
                                .slots = sequence.slots.numbers(),
                                .blocks = sequence.blocks.numbers()});
    step.push_back({sequence.number, static_cast<int>(sequence.slots.numbers().size())});
  }
  device_->Launch(device_sequences);
  in_flight_.push_back(std::move(step));
  return true;
}

// Applies the record of the oldest in-flight step to its searches; skips sequences released
// meanwhile.
void ScriptedEngine::CollectStep() {
  std::span<const ops::BeamRecord> record = device_->Wait();
  const std::vector<InFlightSequence> step = std::move(in_flight_.front());
  in_flight_.pop_front();
  auto sequence = running_.begin();
  for (const auto& [number, rows] : step) {
    const auto own = record.first(rows);
    record = record.subspan(rows);
    while (sequence != running_.end() && sequence->number < number) ++sequence;
    if (sequence == running_.end()) return;
    // It may have ended in the previous step, after this one was launched.
    if (sequence->number != number || sequence->search.finished()) continue;
    sequence->status = FollowRecord(own, sequence->search);
  }
}

std::vector<SequenceEvent> ScriptedEngine::TakeEvents() {
  std::vector<SequenceEvent> events;
  for (RunningSequence& sequence : running_) {
    SequenceEvent& event = events.emplace_back();
    event.id = sequence.id;
    event.target_tokens = sequence.search.steps();
    event.status = sequence.status;
    if (sequence.pass.has_value()) {
      backpointers_.Descend(sequence.slots.numbers().first(1), std::array{0});
    } else if (sequence.status.ok() && !sequence.search.finished()) {
      if (!sequence.on_device)
        backpointers_.Descend(sequence.slots.numbers(), sequence.search.parents());
      if (sequence.report_stable) event.stable = sequence.search.StablePrefix();
    } else if (sequence.status.ok() && sequence.align) {
      sequence.pass.emplace(sequence.search.Results().front().tokens, info_.special.start,
                            sequence.source_tokens);
      backpointers_.Start(sequence.slots.numbers().first(1));
      if (sequence.report_stable) event.stable = sequence.search.StablePrefix();
    }
    event.finished = sequence.done();
    if (!event.finished || !sequence.status.ok()) continue;
    event.hypotheses = sequence.search.Results();
    if (sequence.pass.has_value()) event.attention = sequence.pass->TakeAttention();
  }
  std::erase_if(running_, [](const RunningSequence& sequence) { return sequence.done(); });
  return events;
}

absl::StatusOr<std::vector<SequenceEvent>> ScriptedEngine::Step() {
  std::vector<SequenceEvent> events;
  if (running_.empty()) return events;
  absl::Status status = CatchTorchErrors("a decoder step failed", [&] {
    // The device runs the next step while the host collects the previous one.
    const c10::StreamGuard guard(device_ ? device_->stream() : encoder_stream_);
    const bool launched = device_ && LaunchStep();
    AdvancePasses();  // before the searches, since a pass starts where a search ends
    if (std::any_of(running_.begin(), running_.end(),
                    [](const RunningSequence& sequence) { return sequence.searched_by_host(); })) {
      StepLogits logits = ComputeLogits(/*whole_rows=*/false);
      // Rare. Repeating the step writes the same state to the same entries.
      if (!Suffices(logits)) logits = ComputeLogits(/*whole_rows=*/true);
      AdvanceSearches(logits);
    }
    if (in_flight_.size() > (launched ? 1 : 0)) CollectStep();
    events = TakeEvents();
    return absl::OkStatus();
  });
  if (!status.ok()) {
    // The failure may belong to this step or to the previous one, which is still in flight.
    running_.clear();
    in_flight_.clear();
    if (device_) device_->Discard();
    return status;
  }
  return events;
}

void ScriptedEngine::Release(SequenceId id) {
  std::erase_if(running_, [id](const RunningSequence& sequence) { return sequence.id == id; });
}

// Runs a few steps before the first request, so that torch creates its thread pool and caches, and
// a module that breaks the contract fails here. Sampling needs whole rows of logits, beam search
// the highest of each row, alignment none. Stale values in slots and blocks are never read.
absl::Status ScriptedEngine::WarmUp() {
  SequenceInput input;
  input.source = {info_.special.unk, info_.special.eos};
  input.options.max_target_tokens = std::min(4, info_.limits.max_target_tokens);
  input.options.min_target_tokens = input.options.max_target_tokens;
  input.options.beam_size = std::min(5, info_.limits.max_beam_size);
  for (const bool sampled : {true, false}) {
    input.align = !sampled;
    input.options.seed = sampled ? std::optional<uint64_t>(0) : std::nullopt;
    if (absl::Status status = Check(input); !status.ok()) return status;
    if (absl::Status status = Add({&input, 1}); !status.ok()) return status;
    while (!running_.empty()) {
      absl::StatusOr<std::vector<SequenceEvent>> events = Step();
      if (!events.ok()) return events.status();
      if (!events->front().status.ok()) return events->front().status;
    }
  }
  return absl::OkStatus();
}

}  // namespace linnet::model
