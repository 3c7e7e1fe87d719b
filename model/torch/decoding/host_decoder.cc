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
// weights (ops/linear.h), but not for the libraries that compute bfloat16 and that a GPU uses.
// There steps are padded to a multiple of 4 rows, at least two threads' worth. Measured with MKL's
// float32 (AVX2 and AVX512, 1 to 8 threads): rows are bit-identical for every multiple of 4 rows,
// but not for other counts below 4 per thread. bfloat16 was bit-identical at any count.
constexpr int kRowGrain = 4;

bool AllSuffice(std::span<const RunningSequence> running, const StepLogits& logits) {
  return std::ranges::all_of(running, [&](const RunningSequence& sequence) {
    if (!sequence.searched_by_host()) return true;
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

StepLogits HostDecoder::ComputeLogits(std::span<RunningSequence> running, bool whole_rows) {
  const EngineInfo& info = context_.info;
  int max_blocks = 1, max_steps = 0;
  for (const RunningSequence& sequence : running) {
    max_blocks = std::max(max_blocks, static_cast<int>(sequence.blocks.numbers().size()));
    max_steps = std::max(max_steps, sequence.search->steps());
  }
  inputs_.Start(max_blocks, ReachAt(max_steps));
  std::vector<NarrowRows> narrow;
  for (RunningSequence& sequence : running) {
    if (!sequence.searched_by_host()) continue;
    sequence.first_row = inputs_.rows();
    const auto tokens = sequence.search->tokens();
    if (sequence.outputs && !tokens.empty()) {
      narrow.push_back({sequence.first_row, static_cast<int>(tokens.size()), &*sequence.outputs});
    }
    for (size_t i = 0; i < tokens.size(); ++i) {
      RowNeed need = sequence.search->need(static_cast<int>(i));
      if (whole_rows) need = {.all = true};
      // `best` counts where the row is that of a shortlist.
      need.best = need.all ? info.vocabulary_size : std::min(need.best, info.vocabulary_size);
      inputs_.Add(tokens[i], sequence.search->steps(),
                  backpointers_.of(sequence.slots.numbers()[i]), sequence.blocks.numbers(),
                  sequence.source_tokens, need, sequence.options.temperature);
    }
  }
  const int rows = inputs_.rows();
  AddIdleRows();
  return StepLogits(context_.model, inputs_, rows, info.vocabulary_size, cache_.layers(),
                    context_.state, narrow);
}

void HostDecoder::AdvanceSearches(std::span<RunningSequence> running) {
  if (std::ranges::none_of(running, &RunningSequence::searched_by_host)) return;
  StepLogits logits = ComputeLogits(running, /*whole_rows=*/false);
  // Rare. Repeating the step writes the same state to the same entries.
  if (!AllSuffice(running, logits)) logits = ComputeLogits(running, /*whole_rows=*/true);
  const int64_t values = logits.rows().front().logits.size();
  const auto advance = [&](int64_t begin, int64_t end) {
    for (RunningSequence& sequence : running.subspan(begin, end - begin)) {
      if (!sequence.searched_by_host()) continue;
      sequence.status = sequence.search->Advance(
          logits.rows().subspan(sequence.first_row, sequence.search->live()));
    }
  };
  const int64_t sequences = std::ssize(running);
  ops::ParallelFor(sequences, 4 * std::ssize(logits.rows()) / sequences * (values + 256), advance);
  for (const RunningSequence& sequence : running) {
    if (!sequence.status.ok() || !sequence.searched_by_host()) continue;
    backpointers_.Descend(sequence.slots.numbers(), sequence.search->parents());
  }
}

void HostDecoder::AdvancePasses(std::span<RunningSequence> running) {
  std::vector<RunningSequence*> aligned;
  int max_blocks = 1, max_steps = 0;
  for (RunningSequence& sequence : running) {
    if (!sequence.pass.has_value()) continue;
    aligned.push_back(&sequence);
    max_blocks = std::max(max_blocks, static_cast<int>(sequence.blocks.numbers().size()));
    max_steps = std::max(max_steps, sequence.pass->steps());
  }
  if (aligned.empty()) return;
  inputs_.Start(max_blocks, ReachAt(max_steps));
  for (const RunningSequence* sequence : aligned) {
    inputs_.Add(sequence->pass->input(), sequence->pass->steps(),
                backpointers_.of(sequence->slots.numbers()[0]), sequence->blocks.numbers(),
                sequence->source_tokens, RowNeed{}, 1.0f);
  }
  AddIdleRows();
  const at::Tensor weights = context_.model
                                 .Align(inputs_.tensors(), cache_.layers(), context_.state,
                                        context_.options.alignment_layer)
                                 .to(at::kCPU, at::kFloat)
                                 .contiguous();
  if (weights.dim() != 2 || weights.size(0) != inputs_.rows() ||
      weights.size(1) < max_blocks * kBlockTokens) {
    throw std::runtime_error(absl::StrCat("align gives weights of another shape than [",
                                          inputs_.rows(), " rows, ", max_blocks * kBlockTokens,
                                          " tokens]"));
  }
  const size_t width = weights.size(1);
  for (size_t i = 0; i < aligned.size(); ++i) {
    aligned[i]->pass->Take({weights.const_data_ptr<float>() + i * width, width});
    backpointers_.Descend(aligned[i]->slots.numbers().first(1), std::array{0});
  }
}

}  // namespace linnet::model
