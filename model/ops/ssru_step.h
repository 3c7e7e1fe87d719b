#pragma once

#include <ATen/core/Tensor.h>

#include "model/ops/params.h"

// torch.ops.linnet:
//   ssru_step(Tensor projected, Tensor(a!) state, Tensor positions, Tensor backpointers) -> Tensor
//
// One step of a simpler simple recurrent unit for R rows, each the next position of a hypothesis.
// `positions` and `backpointers` are as in convolution_step.h. The state has two entries per slot,
// this step's and the last one's: several rows may continue one hypothesis, so a row must not
// overwrite the entry that another one still reads.
//
//   z, f = projected[r, :C], sigmoid(projected[r, C:])
//   before = state[(positions[r] - 1) % 2, backpointers[r,1], :], zero at position 0
//   state[positions[r] % 2, backpointers[r,0], :] = c = f * before + (1 - f) * z
//   y[r] = max(0, c)
//
//   projected     [R, 2C]     float32, bfloat16 or (CUDA) float16: candidates, then forget gates
//   state         [2, S, C]   float32 for every type of projected, because an entry carries the
//                             whole prefix; contiguous, changed in place; S slots
//   positions     [R]         int32, steps that the row's hypothesis has taken before this one
//   backpointers  [R, B]      int32, B >= 2; [r,1] is the slot of the row's entry of the last step,
//                             [r,0] its own slot; -1 there marks an idle row: it writes nothing and
//                             its y is zero
//   returns       [R, C]      type of projected, contiguous
//
// R may be 0. The caller's duties and the errors are those of convolution_step.h.
//
// Sources: Kim et al. 2019, From Research to Production and Back: Ludicrously Fast Neural Machine
// Translation, section 2.3; after Lei et al. 2018, Simple Recurrent Units for Highly Parallelizable
// Recurrence.
namespace linnet::ops {

using SsruStepKernel = void (*)(const SsruStepParams& params);

// Checks the arguments, unpacks them for `kernel`, and runs it. The device libraries register this.
at::Tensor SsruStep(const at::Tensor& projected, at::Tensor& state, const at::Tensor& positions,
                    const at::Tensor& backpointers, SsruStepKernel kernel);

}  // namespace linnet::ops
