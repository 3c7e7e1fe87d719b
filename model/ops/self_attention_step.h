#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "model/ops/params.h"

// torch.ops.linnet:
//   self_attention_step(Tensor query, Tensor key, Tensor value, Tensor(a!) cache, Tensor positions,
//                       Tensor ancestry, int heads, int neighbour_heads) -> Tensor
//
// One step of causal self-attention for R rows, each the next position of some hypothesis, over
// the last W positions of its own. What `positions` and `ancestry` mean is told in
// convolution_step.h; `cache` is such a window, whose entries are pairs of a key and a value:
//
//   cache[positions[r] % W, ancestry[r,0], 0 and 1, :] = key[r], value[r]
//   y[r,h] = sum_{j,g} softmax_{j,g}(query[r,h] . key(r,j)[g] / sqrt(d / heads)) * value(r,j)[g]
//   key(r,j), value(r,j) = cache[(positions[r] - j) % W, ancestry[r,j], 0 and 1, :]
//   j = 0 .. min(W-1, positions[r]),   g = max(0, h - n) .. min(heads-1, h + n),
//   n = (neighbour_heads - 1) / 2
//
// neighbour_heads = 1 is plain self-attention, over the whole sequence as long as that is not
// longer than W, and windowed from then on. A larger number lets each head see the keys and values
// of those beside it, under one softmax; the outermost heads have fewer neighbours.
//
//   query, key, value  [R, d]         float32, bfloat16 or (CUDA) float16; query not scaled yet
//   cache              [W, L, 2, d]   type of query, contiguous, changed in place; L lanes, W >= 1
//   positions          [R]            int32, steps that the row's hypothesis has taken before
//   ancestry           [R, A]         int32, A >= W; [r,j] is the lane of the row's key of j steps
//                                     ago, -1 in [r,0] marks an idle row: it writes nothing and its
//                                     y is zero
//   heads                             d % heads == 0; on CUDA a head has at most 256 channels
//   neighbour_heads                   odd, itself included; may exceed the number of heads
//   returns            [R, d]         type of query, contiguous; softmax and sums in float32
//
// R may be 0. The caller's duties, and what throws, are as in convolution_step.h.
//
// Sources: Vaswani et al. 2017, Attention Is All You Need, section 3.2; the windows of positions
// and of heads from Yang et al. 2019, Convolutional Self-Attention Networks (1D and 2D).
namespace linnet::ops {

using SelfAttentionStepKernel = void (*)(const SelfAttentionStepParams& params);

// Checks the arguments, unpacks them for `kernel`, and runs it. The device libraries register this.
at::Tensor SelfAttentionStep(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, at::Tensor& cache,
                             const at::Tensor& positions, const at::Tensor& backpointers,
                             int64_t heads, int64_t neighbour_heads,
                             SelfAttentionStepKernel kernel);

}  // namespace linnet::ops
