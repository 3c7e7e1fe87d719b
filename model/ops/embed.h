#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "model/ops/params.h"

// torch.ops.linnet:
//   embed_tokens(Tensor tokens, Tensor positions, Tensor table, Tensor? position_table,
//                float scale, int first_position, float sinusoid_steps) -> Tensor
//   add_positions(Tensor embedded, Tensor positions, Tensor? position_table, float scale,
//                 int first_position, float sinusoid_steps) -> Tensor
//
// The decoder's input for R rows: the scaled embedding of each row's last token plus that of its
// position. On CUDA it is one launch, where torch needs 14. add_positions is for the CPU, where the
// embeddings may have been unpacked (unpack_outputs): embedded[..., r, :] takes the place of
// table[tokens[r], :], and a leading dimension numbers sequences.
//
//   y[r,:] = scale * table[tokens[r], :] + at(positions[r] + first_position)
//   at(p)  = position_table[p, :]                        if given
//            [sin(p f), cos(p f)],                       else if sinusoid_steps > 0
//            f[i] = 10000^(-i / sinusoid_steps), i < d / 2
//            0                                           else
//
//   tokens          [R]     int64, 0 <= tokens[r] < V
//   positions       [R]     int32, from 0
//   table           [V, d]  float32, bfloat16 or float16; d is even if there are sinusoids
//   position_table  [P, d]  type of table; positions[r] + first_position < P
//   embedded        [..., R, d]  float32 or bfloat16
//   returns         [R, d]  type of table or embedded, and shape of it; the sum is in float32
//
// Throws c10::Error if a shape, type or device does not fit; indices out of range throw on the CPU
// and fail a device assertion on CUDA. For inference: a backward pass throws.
//
// Source: Vaswani et al. 2017, Attention Is All You Need, section 3.5.
namespace linnet::ops {

// The embeddings of tokens are multiplied by `scale`, and those of positions are added.
struct EmbeddedPositions {
  const std::optional<at::Tensor>& table;
  double scale;
  int64_t first;
  double sinusoid_steps;
};

using EmbedKernel = void (*)(const EmbedParams& params);

// Checks, unpacks and runs; the CUDA library registers it.
at::Tensor EmbedTokens(const at::Tensor& tokens, const at::Tensor& positions,
                       const at::Tensor& table, const EmbeddedPositions& added, EmbedKernel kernel);

}  // namespace linnet::ops
