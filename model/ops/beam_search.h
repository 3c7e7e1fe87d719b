#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "model/ops/beam_params.h"

// torch.ops.linnet:
//   beam_inputs(Tensor plan, Tensor[] tables, int[] special, int row_blocks)
//       -> (Tensor tokens, Tensor positions, Tensor ancestry, Tensor blocks, Tensor source_lengths)
//   beam_step(Tensor plan, Tensor logits, Tensor ancestry, Tensor(a!)[] tables, int[] special,
//             Tensor[] grammar, Tensor(b!) record) -> ()
//
// Beam search beside the model, so that what a step says of a vocabulary never leaves the device:
// beam_inputs makes a decoder step's inputs of what the search knows, beam_step takes the logits
// and goes on. Many searches, each with options of its own, share a step. In goes a plan, which
// holds what whoever seats the sequences knows beforehand, and out comes a record of a few words
// per row, which he may read as late as he likes: who has ended takes part with no rows.
//
// The rules are those of model/runtime/search/search.h, the order that of candidates.h. On the CPU
// the results are the same bits, since the normalizer is that of best_logits as well; on CUDA its
// sum is rounded in another order.
//
//   plan      int32 [R, kPlanWords + row_blocks]   BeamPlan, then the blocks of its source
//   tables    tokens int32 [L], sums float32 [L], ancestry int32 [L, A], history int32 [2, L, T],
//             counts int32 [L, 2], states int32 [L]: BeamTables. T is above max_target_tokens of
//             every sequence that forbids n-grams
//   special   start, pad, eos, unk
//   grammar   nothing, or classes uint8 [V], transitions int32 [S, C], tails int32 [S]: BeamGrammar
//   logits    [R, V]  float32, or on CUDA float16 or bfloat16
//   record    int32 [R, kRecordWords]              BeamRecord; rows of no search keep what they had
//   tokens int64 [R], positions int32 [R], ancestry int32 [R, A], blocks int32 [R, row_blocks],
//   source_lengths int32 [R]: what a step of the model takes. A row of no living hypothesis is
//   idle:
//             its lane is -1, its source empty
//
// No memory is read on the host and nothing depends on the plan's values but values: a CUDA graph
// of these operators serves every plan of its number of rows. Plans are believed on CUDA; on the
// CPU they are checked. Throws c10::Error if a shape, type or device does not fit.
namespace linnet::ops {

using BeamInputsKernel = void (*)(const BeamInputsParams& params);
using BeamStepKernel = void (*)(const BeamStepParams& params);

struct StepRows {
  at::Tensor tokens, positions, backpointers, blocks, source_lengths;
};

// Check, unpack and run; the device libraries register these.
StepRows BeamInputs(const at::Tensor& plan, at::TensorList tables, at::IntArrayRef special,
                    int64_t row_blocks, BeamInputsKernel kernel);
void BeamStep(const at::Tensor& plan, const at::Tensor& logits, const at::Tensor& backpointers,
              at::TensorList tables, at::IntArrayRef special, at::TensorList grammar,
              at::Tensor& record, BeamStepKernel kernel);

// The same through the dispatcher, on whatever device the tensors are.
StepRows CallBeamInputs(const at::Tensor& plan, at::TensorList tables, at::IntArrayRef special,
                        int64_t row_blocks);
void CallBeamStep(const at::Tensor& plan, const at::Tensor& logits, const at::Tensor& backpointers,
                  at::TensorList tables, at::IntArrayRef special, at::TensorList grammar,
                  at::Tensor& record);

// Tables of these sizes, zeroed.
std::vector<at::Tensor> NewBeamTables(int64_t slots, int64_t reach, int64_t longest,
                                      at::Device device);

}  // namespace linnet::ops
