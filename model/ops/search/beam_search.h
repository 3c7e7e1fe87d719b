#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "model/ops/search/beam_params.h"

// torch.ops.linnet:
//   beam_inputs(Tensor plan, Tensor[] tables, int[] special, int row_blocks)
//       -> (Tensor tokens, Tensor positions, Tensor backpointers, Tensor blocks,
//           Tensor source_lengths)
//   beam_step(Tensor plan, Tensor logits, Tensor backpointers, Tensor(a!)[] tables, int[] special,
//             Tensor[] grammar, Tensor(b!) record) -> ()
//
// Beam search on the model's device, so that logits are never copied to the host. beam_inputs makes
// the inputs of a decoder step from the tables of the search; beam_step reads the logits and
// updates the tables. Many searches with different options share a step. Per step the host sends a
// plan, which holds only values that it knows beforehand, and receives a record of a few words per
// row. It may read the record any number of steps later: a search that has ended runs on with idle
// rows.
//
// The rules are those of model/runtime/search/beam_search.h, the order that of candidates.h. On the
// CPU the results are the same bits, since the normalizer is that of best_logits as well; on CUDA
// its sum is rounded in another order.
//
//   plan      int32 [R, kPlanWords + row_blocks]   BeamPlan, then the blocks of its source
//   tables    tokens int32 [S], sums float32 [S], backpointers int32 [S, B],
//             history int32 [2, S, T], counts int32 [S, 2], states int32 [S]: BeamTables. T is
//             above max_target_tokens of every sequence that forbids repeats
//   special   start, pad, eos, unk
//   grammar   nothing, or classes uint8 [V], transitions int32 [Q, C], tails int32 [Q]: BeamGrammar
//   logits    [R, V]  float32, or on CUDA float16 or bfloat16
//   record    int32 [R, kRecordWords]              BeamRecord; rows of no search are not written
//   tokens int64 [R], positions int32 [R], backpointers int32 [R, B], blocks int32 [R, row_blocks],
//   source_lengths int32 [R]
//             inputs of a decoder step; a row without a live hypothesis is idle: its slot is -1,
//             its source length 0
//
// The operators read no device memory on the host, and no shape or launch depends on the values of
// the plan: one CUDA graph serves every plan with its number of rows. The values of plans are
// checked on the CPU and trusted on CUDA. Throws c10::Error if a shape, type or device does not
// fit.
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

// The same through the dispatcher, on the device of the tensors.
StepRows CallBeamInputs(const at::Tensor& plan, at::TensorList tables, at::IntArrayRef special,
                        int64_t row_blocks);
void CallBeamStep(const at::Tensor& plan, const at::Tensor& logits, const at::Tensor& backpointers,
                  at::TensorList tables, at::IntArrayRef special, at::TensorList grammar,
                  at::Tensor& record);

// Tables of these sizes, zeroed.
std::vector<at::Tensor> NewBeamTables(int64_t slots, int64_t reach, int64_t longest,
                                      at::Device device);

}  // namespace linnet::ops
