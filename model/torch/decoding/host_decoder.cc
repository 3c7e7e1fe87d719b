#include "model/torch/decoding/host_decoder.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/ops/cpu/parallel.h"

namespace linnet::model {
namespace {

// The result of a row must not depend on the number of rows in the gemm. That holds for packed
// weights (ops/pack_linear.h), but not for the libraries that compute bfloat16 and that a GPU uses.
// There steps are padded to a multiple of 4 rows, at least two threads' worth. Measured with MKL's
// float32 (AVX2 and AVX512, 1 to 8 threads): rows are bit-identical for every multiple of 4 rows,
// but not for other counts below 4 per thread. bfloat16 was bit-identical at any count.
constexpr int kRowGrain = 4;

// A step has as many rows of known tokens as it may have of hypotheses, but at least so many.
constexpr int kMinRunRows = 128;

// Max number of the device's steps to one of the host. On an H200 a step of the host takes as long
// as about three of the device, so that one sequence of it costs 128 others a tenth of their speed.
constexpr int64_t kMaxDeviceSteps = 32;

bool InSearchStep(const RunningSequence& sequence) {
  return sequence.searched_by_host() && sequence.rows > 0;
}

bool AllSuffice(std::span<const RunningSequence> running, const StepLogits& logits) {
  return std::ranges::all_of(running, [&](const RunningSequence& sequence) {
    if (!InSearchStep(sequence)) return true;
    for (int i = 0; i < sequence.search->live(); ++i) {
      if (!sequence.search->suffices(i, logits.rows()[sequence.first_row + i])) return false;
    }
    return true;
  });
}

}  // namespace

HostDecoder::HostDecoder(DecoderContext& context, const EncoderCache& cache)
    : context_(context),
      cache_(cache),
      backpointers_(context.info.rows, context.reach),
      min_reach_(context.model.MinBackpointers(context.reach)) {}

void HostDecoder::AddIdleRows() {
  if (context_.model.packed()) return;
  const int rows = inputs_.rows();
  const int wanted = context_.options.one_shape
                         ? context_.info.rows
                         : std::max((rows + kRowGrain - 1) / kRowGrain * kRowGrain,
                                    kRowGrain * std::min(context_.info.threads, 2));
  inputs_.AddIdle(std::max(wanted, rows) - rows);
}

// Columns of the backpointers in a step whose rows have taken at most `steps` steps: a state that
// holds whole targets is read only as far as the longest of the running targets.
int HostDecoder::ReachAt(int steps) const {
  return std::clamp(steps + 1, min_reach_, backpointers_.reach());
}

bool HostDecoder::IsDue(std::span<const RunningSequence> running) {
  int64_t rows = 0, device_rows = 0;
  for (const RunningSequence& sequence : running) {
    if (sequence.paused) continue;
    const bool host = sequence.pass.has_value() || sequence.searched_by_host();
    if (!host && sequence.launched >= sequence.max_steps) continue;
    (host ? rows : device_rows) += std::ssize(sequence.slots.numbers());
  }
  if (rows == 0) return false;
  const bool due = ++waited_ >= std::min(device_rows / rows, kMaxDeviceSteps);
  if (due) waited_ = 0;
  return due;
}

void HostDecoder::Plan(std::span<RunningSequence> running) {
  const bool due = IsDue(running);
  const bool takes_runs = context_.model.device().is_cpu() && !context_.options.one_shape;
  const int all = std::max(context_.info.rows, kMinRunRows);
  int free = all;
  for (RunningSequence& sequence : running) {
    sequence.rows = sequence.ahead = 0;
    if (sequence.paused || !due) continue;
    if (!sequence.pass.has_value() && !sequence.searched_by_host()) continue;
    const Search& search = *sequence.search;
    const int64_t known =
        sequence.pass.has_value() ? sequence.pass->left() : std::ssize(search.known());
    if (takes_runs) sequence.ahead = static_cast<int>(std::max<int64_t>(known - 1, 0));
    sequence.rows = (sequence.pass.has_value() ? 1 : search.live()) + sequence.ahead;
    if (sequence.ahead == 0) continue;
    if (sequence.rows > free && free < all) {
      sequence.rows = 0;
    } else {
      free -= sequence.rows;
    }
  }
}

at::Tensor HostDecoder::CheckWeights(const at::Tensor& weights, int max_blocks) const {
  if (weights.dim() != 2 || weights.size(0) != inputs_.rows() ||
      weights.size(1) < max_blocks * kBlockTokens) {
    throw std::runtime_error(absl::StrCat("the module gives attention weights of another shape ",
                                          "than [", inputs_.rows(), " rows, ",
                                          max_blocks * kBlockTokens, " tokens]"));
  }
  return weights.to(at::kCPU, at::kFloat).contiguous();
}

StepLogits HostDecoder::ComputeLogits(std::span<RunningSequence> running, bool whole_rows,
                                      at::Tensor& weights) {
  const EngineInfo& info = context_.info;
  int max_blocks = 1, max_steps = 0;
  bool align = false;
  for (const RunningSequence& sequence : running) {
    if (!InSearchStep(sequence)) continue;
    max_blocks = std::max(max_blocks, static_cast<int>(sequence.blocks.numbers().size()));
    max_steps = std::max(max_steps, sequence.search->steps() + sequence.ahead);
    align = align || sequence.attention.has_value();
  }
  inputs_.Start(max_blocks, ReachAt(max_steps));
  std::vector<NarrowRows> narrow;
  for (RunningSequence& sequence : running) {
    if (!InSearchStep(sequence)) continue;
    sequence.first_row = inputs_.rows();
    if (sequence.outputs) {
      narrow.push_back({sequence.first_row, sequence.rows, &*sequence.outputs});
    }
    const Search& search = *sequence.search;
    for (int i = 0; i < sequence.rows; ++i) {
      const int hypothesis = std::min(i, search.live() - 1), ahead = i - hypothesis;
      const auto known = search.known();
      RowNeed need = ahead == 0 ? search.need(hypothesis) : RowNeed{.also = known[ahead]};
      if (whole_rows) need = {.all = true};
      // `best` counts where the row is that of a shortlist.
      need.best = need.all ? info.vocabulary_size : std::min(need.best, info.vocabulary_size);
      inputs_.Add(ahead == 0 ? search.tokens()[hypothesis] : known[ahead - 1],
                  search.steps() + ahead, backpointers_.of(sequence.slots.numbers()[hypothesis]),
                  sequence.blocks.numbers(), sequence.source_tokens, need,
                  sequence.options.temperature);
    }
  }
  const int rows = inputs_.rows();
  AddIdleRows();
  StepWeights found = {.layer = context_.options.alignment_layer};
  StepLogits logits(context_.model, inputs_, rows, info.vocabulary_size, cache_.layers(),
                    context_.state, narrow, align ? &found : nullptr);
  if (align) weights = CheckWeights(found.weights, max_blocks);
  return logits;
}

void HostDecoder::AdvanceSearches(std::span<RunningSequence> running) {
  if (std::ranges::none_of(running, InSearchStep)) return;
  at::Tensor weights;
  StepLogits logits = ComputeLogits(running, /*whole_rows=*/false, weights);
  // Rare. Repeating the step writes the same state to the same entries.
  if (!AllSuffice(running, logits)) logits = ComputeLogits(running, /*whole_rows=*/true, weights);
  const int64_t values = logits.rows().front().logits.size();
  const auto advance = [&](int64_t begin, int64_t end) {
    for (RunningSequence& sequence : running.subspan(begin, end - begin)) {
      if (!InSearchStep(sequence)) continue;
      Search& search = *sequence.search;
      for (int row = 0; row < sequence.rows && sequence.status.ok();) {
        const int live = search.live(), first = sequence.first_row + row;
        sequence.status = search.Advance(logits.rows().subspan(first, live));
        row += live;
        if (sequence.attention && sequence.status.ok()) {
          const size_t width = weights.size(1);
          sequence.attention->Add({weights.const_data_ptr<float>() + first * width, live * width},
                                  width, search.parents(), search.tokens());
        }
      }
    }
  };
  const int64_t sequences = std::ssize(running);
  ops::ParallelFor(sequences, 4 * std::ssize(logits.rows()) / sequences * (values + 256), advance);
  for (const RunningSequence& sequence : running) {
    if (!InSearchStep(sequence)) continue;  // or it has ended
    const auto slots = sequence.slots.numbers();
    for (int i = 0; i < sequence.ahead; ++i) backpointers_.Descend(slots.first(1), std::array{0});
    backpointers_.Descend(slots, sequence.search->parents());
  }
}

void HostDecoder::AdvancePasses(std::span<RunningSequence> running) {
  int max_blocks = 1, max_steps = 0;
  std::vector<RunningSequence*> aligned;
  for (RunningSequence& sequence : running) {
    if (!sequence.pass.has_value() || sequence.rows == 0) continue;
    aligned.push_back(&sequence);
    max_blocks = std::max(max_blocks, static_cast<int>(sequence.blocks.numbers().size()));
    max_steps = std::max(max_steps, sequence.pass->steps() + sequence.ahead);
  }
  if (aligned.empty()) return;
  inputs_.Start(max_blocks, ReachAt(max_steps));
  for (const RunningSequence* sequence : aligned) {
    const int steps = sequence->pass->steps();
    for (int position = steps; position < steps + sequence->rows; ++position) {
      inputs_.Add(sequence->pass->input(position), position,
                  backpointers_.of(sequence->slots.numbers()[0]), sequence->blocks.numbers(),
                  sequence->source_tokens, RowNeed{}, 1.0f);
    }
  }
  AddIdleRows();
  const at::Tensor weights =
      CheckWeights(context_.model.Align(inputs_.tensors(), cache_.layers(), context_.state,
                                        context_.options.alignment_layer),
                   max_blocks);
  const size_t width = weights.size(1);
  const float* row = weights.const_data_ptr<float>();
  for (RunningSequence* sequence : aligned) {
    for (int i = 0; i < sequence->rows; ++i, row += width) {
      sequence->pass->Take({row, width});
      backpointers_.Descend(sequence->slots.numbers().first(1), std::array{0});
    }
  }
}

}  // namespace linnet::model
