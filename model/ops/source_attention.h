#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "model/ops/params.h"

// torch.ops.linnet:
//   source_attention(Tensor query, Tensor encoder_cache, Tensor blocks, Tensor lengths, int heads)
//       -> Tensor
//   source_attention_weights(the same, int head) -> Tensor
//
// One step of attention from R decoder rows to their sources. The encoder KV cache holds the keys
// and values of all sources in blocks of P tokens. A row lists the blocks of its source; all
// hypotheses of a source list the same ones, so that its keys and values are stored once.
//
//   y[r,head] = sum_{s < lengths[r]} softmax_s(query[r,head] . key(r,s)[head] / sqrt(d / heads))
//                                    * value(r,s)[head]
//   key(r,s), value(r,s) = encoder_cache[blocks[r, s / P], s % P, 0 and 1, :]
//
//   query          [R, d]         float32, bfloat16 or (CUDA) float16; not scaled yet
//   encoder_cache  [N, P, 2, d]   type of query, contiguous
//   blocks         [R, M]         int32; entries after the source's last block are never used
//   lengths        [R]            int32, 0 <= lengths[r] <= M * P; 0 marks an idle row, y is zero
//   heads                         d % heads == 0; on CUDA a head has at most 256 channels
//   returns        [R, d]         type of query, contiguous; softmax and sums are kept in float32
//
// source_attention_weights returns the softmax of one head, or with head = -1 the mean over the
// heads, in float32 [R, M * P]; it is zero from lengths[r] on. For the CPU only.
//
// Throws c10::Error if a shape, type or device does not fit; indices out of range throw on the CPU
// and fail a device assertion on CUDA. For inference: a backward pass throws.
//
// Sources: Vaswani et al. 2017, Attention Is All You Need, section 3.2; for the blocks Kwon et al.
// 2023, Efficient Memory Management for Large Language Model Serving with PagedAttention.
namespace linnet::ops {

using SourceAttentionKernel = void (*)(const SourceAttentionParams& params);

// Checks the arguments, unpacks them for `kernel`, and runs it. The device libraries register this.
at::Tensor SourceAttention(const at::Tensor& query, const at::Tensor& encoder_cache,
                           const at::Tensor& blocks, const at::Tensor& lengths, int64_t heads,
                           SourceAttentionKernel kernel);

}  // namespace linnet::ops
