#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "model/ops/params.h"

// torch.ops.linnet:
//   self_attention(Tensor query_key_value, Tensor lengths, int heads, Tensor? starts=None) ->
//   Tensor
//
// Attention of every position of a sequence to all of its positions: what an encoder needs. On the
// CPU torch's operators for it, with their masks, took half of the encoder call of a student with
// six layers. A sequence's result has the same bits beside any others, at any padded length and in
// blocks.
//
//   y[b,i,h] = sum_{j < lengths[b]} softmax_j(query[b,i,h] . key[b,j,h] / sqrt(d / heads))
//                                   * value[b,j,h]
//   query_key_value  [B, T, 3 d]  float32, bfloat16 or (CUDA) float16; per position
//                                 query, key and value
//   lengths          [B]          int32, 0 <= lengths[b] <= T; y is zero from there on
//   heads                         d % heads == 0; on CUDA a head has at most 256 channels
//   starts           [B]          or none: see first_position.h
//   returns          [B, T, d]    type of query_key_value; softmax and sums are kept in float32
//
// Throws c10::Error if a shape, type or device does not fit; lengths out of range throw on the CPU
// and fail a device assertion on CUDA. For inference: a backward pass throws.
//
// Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.
namespace linnet::ops {

using SelfAttentionKernel = void (*)(const SelfAttentionParams& params);

// Checks the arguments, unpacks them for `kernel`, and runs it. The device libraries register this.
at::Tensor SelfAttention(const at::Tensor& query_key_value, const at::Tensor& lengths,
                         int64_t heads, const std::optional<at::Tensor>& starts,
                         SelfAttentionKernel kernel);

}  // namespace linnet::ops
