#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "model/ops/params.h"

// torch.ops.linnet:
//   self_attention_step(Tensor query, Tensor key, Tensor value, Tensor(a!) cache, Tensor positions,
//                       Tensor backpointers, int heads, int neighbour_heads) -> Tensor
//
// One step of causal self-attention for R rows, each the next position of a hypothesis, over the
// last W positions of that hypothesis. `positions` and `backpointers` are as in convolution_step.h;
// `cache` is laid out as the state there, with pairs of a key and a value as entries:
//
//   cache[positions[r] % W, backpointers[r,0], 0 and 1, :] = key[r], value[r]
//   y[r,h] = sum_{j,g} softmax_{j,g}(query[r,h] . key(r,j)[g] / sqrt(d / heads)) * value(r,j)[g]
//   key(r,j), value(r,j) = cache[(positions[r] - j) % W, backpointers[r,j], 0 and 1, :]
//   j = 0 .. min(W-1, positions[r]),   g = max(0, h - n) .. min(heads-1, h + n),
//   n = (neighbour_heads - 1) / 2
//
// neighbour_heads = 1 is plain self-attention: over the whole sequence up to W positions, over a
// sliding window of W positions from then on. A larger number lets each head read the keys and
// values of its neighbouring heads as well, under one softmax; the outermost heads have fewer
// neighbours.
//
//   query, key, value  [R, d]         float32, bfloat16 or (CUDA) float16; query not scaled yet
//   cache              [W, S, 2, d]   type of query, contiguous, changed in place; S slots, W >= 1
//   positions          [R]            int32, steps that the row's hypothesis has taken before
//   backpointers       [R, B]         int32, B >= W; [r,j] is the slot of the row's key of j steps
//                                     ago, -1 in [r,0] marks an idle row: it writes nothing and its
//                                     y is zero
//   heads                             d % heads == 0; on CUDA a head has at most 256 channels
//   neighbour_heads                   odd, itself included; may exceed the number of heads
//   returns            [R, d]         type of query, contiguous; softmax and sums in float32
//
// R may be 0. The caller's duties and the errors are those of convolution_step.h.
//
// Sources: Vaswani et al. 2017, Attention Is All You Need, section 3.2; for the windows of
// positions and of heads Yang et al. 2019, Convolutional Self-Attention Networks (1D and 2D).
namespace linnet::ops {

using SelfAttentionStepKernel = void (*)(const SelfAttentionStepParams& params);

// Checks the arguments, unpacks them for `kernel`, and runs it. The device libraries register this.
at::Tensor SelfAttentionStep(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, at::Tensor& cache,
                             const at::Tensor& positions, const at::Tensor& backpointers,
                             int64_t heads, int64_t neighbour_heads,
                             SelfAttentionStepKernel kernel);

}  // namespace linnet::ops
