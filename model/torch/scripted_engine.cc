#include "model/torch/scripted_engine.h"

#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/torch/module/catch_torch_errors.h"
#include "proto/status_macros.h"

namespace linnet::model {

ScriptedEngine::ScriptedEngine(ScriptedModel model, EngineInfo info,
                               const ScriptedEngineOptions& options,
                               std::optional<Shortlist> shortlist)
    : context_(std::move(model), std::move(info), options),
      shortlist_(std::move(shortlist)),
      slots_(context_.info.rows),
      cache_(context_.model, context_.info.encoder_cache_tokens, context_.info.special.pad),
      host_(context_, cache_) {}

void ScriptedEngine::SearchOnDevice(const std::string& no_graphs) {
  cache_.UseOwnStream();
  device_ = std::make_unique<DeviceDecoder>(context_, cache_);
  device_->Prepare(no_graphs);
  context_.info.search = absl::StrCat("device, ", device_->graphs());
}

bool ScriptedEngine::HasRoom(std::span<const SequenceInput> sequences) const {
  int64_t slots = 0, blocks = 0;
  for (const SequenceInput& sequence : sequences) {
    slots += RowsOf(sequence);
    blocks += BlocksFor(std::ssize(sequence.source));
  }
  return slots <= slots_.free() && blocks <= cache_.free_blocks();
}

absl::Status ScriptedEngine::Check(const SequenceInput& sequence) const {
  return CheckSequence(sequence, info());
}

absl::Status ScriptedEngine::Add(std::span<const SequenceInput> sequences) {
  if (sequences.empty()) return absl::OkStatus();
  if (!HasRoom(sequences)) {
    return absl::InternalError(absl::StrCat(
        "there is no room for ", sequences.size(), " sequences: ", slots_.free(), " rows and ",
        cache_.free_blocks() * kBlockTokens, " tokens of the encoder cache are free"));
  }
  return CatchTorchErrors("encoding failed", [&] {
    std::vector<RunningSequence> added;
    std::vector<EncoderCache::Source> sources;
    for (const SequenceInput& input : sequences) {
      added.push_back(StartSequence(input));
      sources.push_back({input.source, added.back().blocks.numbers()});
    }
    const auto encoded = cache_.Encode(sources, context_.options.one_shape);
    for (RunningSequence& sequence : added) sequence.encoded = encoded;
    std::move(added.begin(), added.end(), std::back_inserter(running_));
    return absl::OkStatus();
  });
}

RunningSequence ScriptedEngine::StartSequence(SequenceInput input) {
  SearchOptions& options = input.options;
  if (context_.options.mask_eos) options.min_target_tokens = options.max_target_tokens;
  BeamSearch search = StartSearch(input, info());
  const int silent = static_cast<int>(input.silent.size());
  options.min_target_tokens += silent;
  options.max_target_tokens += silent;
  RunningSequence sequence = {
      .id = input.id,
      .options = options,
      .search = std::move(search),
      .source_tokens = static_cast<int>(input.source.size()),
      .text = {.begin = input.before_text, .tokens = static_cast<int>(TextOf(input).size())},
      .silent = input.silent,
      .slots = slots_.Take(RowsOf(input)),
      .blocks = cache_.Take(std::ssize(input.source)),
      .report_stable = input.report_stable,
      .align = input.align,
      .outputs = OutputsFor(input)};
  sequence.on_device = device_ && !sequence.outputs && DeviceDecoder::Supports(input);
  sequence.number = ++ever_added_;
  sequence.max_steps = input.target ? silent + static_cast<int>(input.target->size())
                                    : options.max_target_tokens + 1;
  host_.Start(sequence);
  return sequence;
}

// Sampling, constraints and given targets may use any token, so they get the whole vocabulary.
std::optional<OutputRows> ScriptedEngine::OutputsFor(const SequenceInput& sequence) {
  if (!shortlist_ || sequence.target || sequence.options.sampling() ||
      !sequence.constraints.empty()) {
    return std::nullopt;
  }
  std::vector<TokenId> others = sequence.silent;
  others.insert(others.end(), sequence.prefix.begin(), sequence.prefix.end());
  if (info().grammar != nullptr) {  // a multi-token character must be able to end
    const auto bytes = info().grammar->byte_pieces();
    others.insert(others.end(), bytes.begin(), bytes.end());
  }
  return context_.model.OutputRowsFor(shortlist_->TokensFor(sequence.source, others));
}

absl::StatusOr<std::vector<SequenceEvent>> ScriptedEngine::Step() {
  std::vector<SequenceEvent> events;
  if (running_.empty()) return events;
  absl::Status status = CatchTorchErrors("a decoder step failed", [&] {
    StepDecoders();
    events = TakeEvents();
    return absl::OkStatus();
  });
  if (!status.ok()) {
    // The failure may belong to this step or to the previous one, which is still in flight.
    running_.clear();
    if (device_) device_->Discard();
    return status;
  }
  return events;
}

// The device runs the next step while the host decodes and collects the previous one.
void ScriptedEngine::StepDecoders() {
  const c10::StreamGuard guard(device_ ? device_->stream() : cache_.stream());
  const bool launched = device_ && device_->Launch(running_);
  host_.AdvancePasses(running_);  // before the searches, since a pass starts where a search ends
  host_.AdvanceSearches(running_);
  if (device_ && device_->in_flight() > (launched ? 1 : 0)) device_->Collect(running_);
}

std::vector<SequenceEvent> ScriptedEngine::TakeEvents() {
  std::vector<SequenceEvent> events;
  for (RunningSequence& sequence : running_) {
    SequenceEvent& event = events.emplace_back();
    event.id = sequence.id;
    event.target_tokens = sequence.search.steps();
    event.status = sequence.status;
    if (sequence.status.ok() && !sequence.pass.has_value()) {
      if (sequence.search.finished() && sequence.align) {
        sequence.pass.emplace(sequence.silent, sequence.search.Results().front().tokens,
                              info().special.start, sequence.text);
        host_.Start(sequence);
      }
      if (sequence.report_stable && !sequence.done()) event.stable = sequence.search.StablePrefix();
    }
    event.finished = sequence.done();
    if (!event.finished || !sequence.status.ok()) continue;
    event.hypotheses = sequence.search.Results();
    if (sequence.pass.has_value()) event.attention = sequence.pass->TakeAttention();
  }
  std::erase_if(running_, [](const RunningSequence& sequence) { return sequence.done(); });
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
  input.source = {info().special.unk, info().special.eos};
  input.options.max_target_tokens = std::min(4, info().limits.max_target_tokens);
  input.options.min_target_tokens = input.options.max_target_tokens;
  input.options.beam_size = std::min(5, info().limits.max_beam_size);
  for (const bool sampled : {true, false}) {
    input.align = !sampled;
    input.options.seed = sampled ? std::optional<uint64_t>(0) : std::nullopt;
    RETURN_IF_ERROR(Check(input));
    RETURN_IF_ERROR(Add({&input, 1}));
    while (!running_.empty()) {
      ASSIGN_OR_RETURN(std::vector<SequenceEvent> events, Step());
      RETURN_IF_ERROR(events.front().status);
    }
  }
  return absl::OkStatus();
}

}  // namespace linnet::model
