#pragma once

// torch.ops.linnet:
//   self_attention(Tensor query_key_value, Tensor lengths, int heads) -> Tensor
//
// Attention of every position of a sequence to all of its positions: what an encoder needs. For the
// CPU, where torch's operators for it, with their masks, took half of the encoder call of a student
// with six layers. A sequence's result has the same bits beside any others and at any padded
// length.
//
//   y[b,i,h] = sum_{j < lengths[b]} softmax_j(query[b,i,h] . key[b,j,h] / sqrt(d / heads))
//                                   * value[b,j,h]
//   query_key_value  [B, T, 3 d]  float32 or bfloat16; per position query, key and value
//   lengths          [B]          int32, 0 <= lengths[b] <= T; y is zero from there on
//   heads                         d % heads == 0
//   returns          [B, T, d]    type of query_key_value; softmax and sums are kept in float32
//
// Throws c10::Error if a shape, type, device or length does not fit. For inference: a backward pass
// throws.
//
// Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.
