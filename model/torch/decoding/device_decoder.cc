#include "model/torch/decoding/device_decoder.h"

#include <ATen/ops/zeros.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cassert>
#include <exception>

#include "absl/strings/str_cat.h"
#include "model/ops/search/beam_search.h"
#include "model/torch/decoding/beam_plan.h"

namespace linnet::model {

std::vector<int> StepSizes(int max) {
  std::vector<int> sizes;
  for (int size = 2, gap = 1; size < max; size += gap) {
    sizes.push_back(size);
    if (size >= 8 * gap) gap *= 2;
  }
  sizes.push_back(max);
  return sizes;
}

DeviceDecoder::DeviceDecoder(DecoderContext& context, const EncoderCache& cache)
    : context_(context),
      cache_(cache),
      row_blocks_(BlocksFor(context.info.limits.max_source_tokens)),
      special_({context.info.special.start, context.info.special.pad, context.info.special.eos,
                context.info.special.unk}),
      stream_(context.model.device(), /*urgent=*/true),
      tables_(ops::NewBeamTables(context.info.rows, context.reach, HistoryEntries(context.info),
                                 context.model.device())),
      grammar_(GrammarTensors(context.info.grammar.get(), context.model.device())),
      steps_of_size_("a step", "rows",
                     context.options.one_shape ? std::vector<int>{context.info.rows}
                                               : StepSizes(context.info.rows),
                     context.options.time_gemms, [this](int size) { Run(size); }),
      steps_{InFlightStep{{}, {}, DeviceEvent(context.model.device())},
             InFlightStep{{}, {}, DeviceEvent(context.model.device())}} {
  const at::Device device = context.model.device();
  const std::array<int64_t, 2> plan = {context.info.rows, ops::kPlanWords + row_blocks_};
  const std::array<int64_t, 2> record = {context.info.rows, ops::kRecordWords};
  const auto ints = at::TensorOptions(device).dtype(at::kInt);
  plan_ = at::zeros(plan, ints);
  record_ = at::zeros(record, ints);
  for (InFlightStep& step : steps_) {
    step.plan = PinnedZeros(plan, at::kInt, device);
    step.record = PinnedZeros(record, at::kInt, device);
  }
  // The tensors above, the model and the encoder cache were created on it.
  WaitFor(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

// In-flight steps write to the tensors that are freed here.
DeviceDecoder::~DeviceDecoder() { Discard(); }

bool DeviceDecoder::Supports(const Search& search, int64_t rows) {
  return search.has_device_form() && rows <= ops::kMaxBeam;
}

void DeviceDecoder::Prepare(const std::string& no_graphs) {
  const c10::StreamGuard guard(stream_);
  FillPlan({}, context_.info.rows, steps_[0].plan);  // smaller sizes use its first rows
  plan_.copy_(steps_[0].plan);
  steps_of_size_.Prepare(stream_, no_graphs);
}

void DeviceDecoder::Run(int size) {
  const at::Tensor plan = plan_.narrow(0, 0, size);
  at::Tensor record = record_.narrow(0, 0, size);
  const ops::StepRows rows = ops::CallBeamInputs(plan, tables_, special_, row_blocks_);
  at::Tensor logits = context_.model.Step({.tokens = rows.tokens,
                                           .positions = rows.positions,
                                           .backpointers = rows.backpointers,
                                           .blocks = rows.blocks,
                                           .source_lengths = rows.source_lengths,
                                           .counts = {},
                                           .also = {},
                                           .temperatures = {}},
                                          cache_.layers(), context_.state);
  if (logits.dim() != 2 || logits.size(0) != size) {
    throw std::runtime_error(
        absl::StrCat("step gives logits of another shape than [", size, " rows, tokens]"));
  }
  if (logits.is_cpu()) logits = logits.to(at::kFloat);
  ops::CallBeamStep(plan, logits.contiguous(), rows.backpointers, tables_, special_, grammar_,
                    record);
}

std::vector<RunningSequence*> DeviceDecoder::NextStep(std::span<RunningSequence> running) const {
  std::vector<RunningSequence*> ready, waiting;
  for (RunningSequence& sequence : running) {
    if (sequence.paused) continue;
    if (sequence.encoded.pending() && !sequence.on_device && sequence.rows > 0) {
      sequence.encoded.call->Block(stream_);  // the host decoder runs on this stream as well
      sequence.TakeEncoded();
    } else if (sequence.encoded.pending() && sequence.encoded.call->done()) {
      sequence.TakeEncoded();
    }
    if (!sequence.on_device || !sequence.status.ok()) continue;
    if (!sequence.search->finished() && sequence.launched < sequence.max_steps) {
      (sequence.encoded.pending() ? waiting : ready).push_back(&sequence);
    }
  }
  if (!ready.empty()) return ready;
  for (RunningSequence* sequence : waiting) {
    sequence->encoded.call->Block(stream_);
    sequence->TakeEncoded();
  }
  std::erase_if(waiting, [](const RunningSequence* sequence) { return !sequence->status.ok(); });
  return waiting;
}

bool DeviceDecoder::Launch(std::span<RunningSequence> running) {
  assert(in_flight() < kMaxInFlight);
  const std::vector<RunningSequence*> sequences = NextStep(running);
  if (sequences.empty()) return false;
  const c10::StreamGuard guard(stream_);
  InFlightStep& step = steps_[launched_ % kMaxInFlight];
  step.sequences.clear();
  int rows = 0;
  for (const RunningSequence* sequence : sequences) {
    step.sequences.push_back(
        {sequence->number, static_cast<int>(sequence->slots.numbers().size())});
    rows += step.sequences.back().rows;
  }
  const int size = steps_of_size_.SizeFor(rows);
  FillPlan(sequences, size, step.plan);
  plan_.narrow(0, 0, size).copy_(step.plan.narrow(0, 0, size), /*non_blocking=*/true);
  steps_of_size_.Launch(size);
  step.record.narrow(0, 0, size).copy_(record_.narrow(0, 0, size), /*non_blocking=*/true);
  step.done.Record(stream_);
  for (RunningSequence* sequence : sequences) ++sequence->launched;
  ++launched_;
  return true;
}

void DeviceDecoder::Collect(std::span<RunningSequence> running) {
  assert(in_flight() > 0);
  const InFlightStep& step = steps_[collected_++ % kMaxInFlight];
  step.done.Wait();
  const auto* record =
      reinterpret_cast<const ops::BeamRecord*>(step.record.const_data_ptr<int32_t>());
  auto sequence = running.begin();
  for (const auto& [number, rows] : step.sequences) {
    const std::span own(record, rows);
    record += rows;
    while (sequence != running.end() && sequence->number < number) ++sequence;
    if (sequence == running.end()) return;
    // It may have ended in the previous step, after this one was launched.
    if (sequence->number != number || sequence->search->finished()) continue;
    sequence->status = FollowRecord(own, *sequence->search);
  }
}

void DeviceDecoder::Discard() {
  try {
    WaitFor(stream_);
  } catch (const std::exception&) {
    // A failed device runs nothing more.
  }
  collected_ = launched_;
}

}  // namespace linnet::model
