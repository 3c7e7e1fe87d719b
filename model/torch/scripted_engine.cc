#include "model/torch/scripted_engine.h"

#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/ops/gemm_choice.h"
#include "model/torch/encoder/encoder_times.h"
#include "model/torch/module/catch_torch_errors.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

constexpr int kTimedRuns = 7;

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

double Median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

}  // namespace

ScriptedEngine::ScriptedEngine(ScriptedModel model, EngineInfo info,
                               const ScriptedEngineOptions& options,
                               std::optional<Shortlist> shortlist)
    : context_(std::move(model), std::move(info), options),
      shortlist_(std::move(shortlist)),
      slots_(context_.info.rows),
      cache_(context_.model, context_.info.encoder_cache_tokens,
             context_.info.limits.max_source_tokens, context_.info.special.pad),
      host_(context_, cache_) {}

void ScriptedEngine::SearchOnDevice(const std::string& no_graphs) {
  cache_.RunBeside(context_.info.threads);
  cache_.EncodeInBlocks(context_.options.time_gemms, no_graphs);
  device_ = std::make_unique<DeviceDecoder>(context_, cache_);
  device_->Prepare(no_graphs);
  context_.info.search = absl::StrCat("device, ", device_->graphs());
  if (no_graphs.empty()) absl::StrAppend(&context_.info.search, "; encoder: ", cache_.graphs());
  if (context_.options.time_gemms) context_.info.gemms = ops::GemmTable::OfProcess().Describe();
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
      const auto blocks = added.back().blocks.numbers();
      sources.push_back({input.source, {blocks.begin(), blocks.end()}});
    }
    int threads = info().threads;
    if (context_.options.threads.has_value()) {
      int64_t tokens = 0;
      for (const RunningSequence& sequence : added) tokens += sequence.source_tokens;
      const auto [rows, outputs] = StepSize(added);
      threads = context_.options.threads->OfEncoderCall(tokens, rows, outputs);
    }
    const ThreadScope scope(threads, info().threads);
    const auto call = cache_.Encode(std::move(sources), context_.options.one_shape);
    for (int i = 0; i < std::ssize(added); ++i) added[i].encoded = {call, i};
    std::move(added.begin(), added.end(), std::back_inserter(running_));
    return absl::OkStatus();
  });
}

RunningSequence ScriptedEngine::StartSequence(SequenceInput input) {
  SearchOptions& options = input.options;
  if (context_.options.mask_eos) options.min_target_tokens = options.max_target_tokens;
  std::unique_ptr<Search> search = StartSearch(input, info());
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
  sequence.on_device =
      device_ && !sequence.outputs && DeviceDecoder::Supports(*sequence.search, RowsOf(input));
  if (input.align && !sequence.on_device && host_.aligns_searches())
    sequence.attention.emplace(sequence.text);
  sequence.number = ++ever_added_;
  sequence.max_steps = input.target ? silent + static_cast<int>(input.target->size())
                                    : options.max_target_tokens + 1;
  host_.Start(sequence);
  return sequence;
}

// Sampling, constraints, wished lengths, starts to spell and given targets may use any token, so
// they get the whole vocabulary.
std::optional<OutputRows> ScriptedEngine::OutputsFor(const SequenceInput& sequence) {
  if (!shortlist_ || sequence.target || sequence.options.sampling() ||
      !sequence.constraints.empty() || sequence.length != nullptr || sequence.start != nullptr) {
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
    for (const RunningSequence& sequence : running_) {
      if (IsDeviceLost(sequence.status)) return sequence.status;
    }
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

std::pair<int64_t, int64_t> ScriptedEngine::StepSize(std::span<const RunningSequence> added) const {
  int64_t rows = 0, outputs = 0;
  for (const std::span<const RunningSequence> sequences : {std::span(running_), added}) {
    for (const RunningSequence& sequence : sequences) {
      if (sequence.paused) continue;
      const int64_t own = std::max<int64_t>(std::ssize(sequence.slots.numbers()), sequence.rows);
      rows += own;
      outputs += own * (sequence.outputs ? std::ssize(sequence.outputs->tokens)
                                         : static_cast<int64_t>(info().vocabulary_size));
    }
  }
  return {rows, outputs};
}

// The device runs the next step while the host decodes and collects the previous one.
void ScriptedEngine::StepDecoders() {
  host_.Plan(running_);
  int threads = info().threads;
  if (context_.options.threads.has_value()) {
    const auto [rows, outputs] = StepSize({});
    threads = context_.options.threads->OfStep(rows, outputs);
  }
  const ThreadScope scope(threads, info().threads);
  const c10::StreamGuard guard(device_ ? device_->stream() : cache_.stream());
  const bool launched = device_ && device_->Launch(running_);
  host_.AdvancePasses(running_);  // before the searches, since a pass starts where a search ends
  host_.AdvanceSearches(running_);
  if (device_ && device_->in_flight() > (launched ? 1 : 0)) device_->Collect(running_);
}

std::vector<SequenceEvent> ScriptedEngine::TakeEvents() {
  std::vector<SequenceEvent> events;
  for (RunningSequence& sequence : running_) {
    if (sequence.paused && !sequence.done()) continue;
    SequenceEvent& event = events.emplace_back();
    event.id = sequence.id;
    event.target_tokens = sequence.search->steps();
    event.status = sequence.status;
    if (sequence.status.ok() && !sequence.pass.has_value()) {
      if (sequence.search->finished() && sequence.align && !sequence.attention) {
        sequence.pass.emplace(sequence.silent, sequence.search->Results().front().tokens,
                              info().special.start, sequence.text);
        host_.Start(sequence);
      }
      if (sequence.report_stable && !sequence.done())
        event.stable = sequence.search->StablePrefix();
    }
    event.finished = sequence.done();
    if (!event.finished || !sequence.status.ok()) continue;
    event.hypotheses = sequence.search->Results();
    if (sequence.pass.has_value()) event.attention = sequence.pass->TakeAttention();
    if (sequence.attention) {
      event.attention = sequence.attention->Of(sequence.silent, event.hypotheses.front().tokens);
    }
  }
  std::erase_if(running_, [](const RunningSequence& sequence) { return sequence.done(); });
  return events;
}

void ScriptedEngine::SetPaused(SequenceId id, bool paused) {
  for (RunningSequence& sequence : running_) {
    if (sequence.id == id) sequence.paused = paused;
  }
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
  return device_ ? MeasureEncoder() : absl::OkStatus();
}

absl::Status ScriptedEngine::MeasureEncoder() {
  const int tokens = std::min(32, info().limits.max_source_tokens);
  const int sources = std::min(8, cache_.free_blocks() / BlocksFor(tokens));
  if (sources * tokens <= 1) return absl::OkStatus();
  EncoderTimes times = {.few_tokens = 1, .many_tokens = sources * tokens};
  ASSIGN_OR_RETURN(times.few_seconds, EncodeSeconds(1, 1));
  ASSIGN_OR_RETURN(times.many_seconds, EncodeSeconds(sources, tokens));
  ASSIGN_OR_RETURN(times.step_seconds, StepSeconds());
  context_.info.encoder_cost = FitEncoderCost(times);
  return absl::OkStatus();
}

absl::StatusOr<double> ScriptedEngine::EncodeSeconds(int sources, int tokens) {
  std::vector<FreeList::Lease> leases;
  std::vector<EncoderCache::Source> inputs;
  for (int i = 0; i < sources; ++i) {
    const auto blocks = leases.emplace_back(cache_.Take(tokens)).numbers();
    inputs.push_back(
        {std::vector<TokenId>(tokens, info().special.unk), {blocks.begin(), blocks.end()}});
  }
  std::vector<double> seconds;
  for (int run = 0; run <= kTimedRuns; ++run) {
    const Stopwatch watch;
    const auto call = cache_.Encode(inputs, /*one_by_one=*/false);
    call->Wait();
    RETURN_IF_ERROR(call->status(0));
    if (run > 0) seconds.push_back(watch.seconds());  // the first call sizes buffers
  }
  return Median(std::move(seconds));
}

absl::StatusOr<double> ScriptedEngine::StepSeconds() {
  SequenceInput input;
  input.source = {info().special.unk, info().special.eos};
  input.options.beam_size = std::min(5, info().limits.max_beam_size);
  input.options.max_target_tokens = std::min(kTimedRuns, info().limits.max_target_tokens);
  input.options.min_target_tokens = input.options.max_target_tokens;
  RETURN_IF_ERROR(Add({&input, 1}));
  std::vector<double> seconds;
  while (!running_.empty()) {
    const Stopwatch watch;
    ASSIGN_OR_RETURN(std::vector<SequenceEvent> events, Step());
    RETURN_IF_ERROR(events.front().status);
    seconds.push_back(watch.seconds());
  }
  return Median(std::move(seconds));
}

}  // namespace linnet::model
