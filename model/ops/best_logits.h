#pragma once

// torch.ops.linnet:
//   best_logits(Tensor x, Tensor weight, Tensor? bias, Tensor counts, Tensor also,
//               Tensor temperatures) -> (Tensor logits, Tensor tokens, Tensor log_normalizers)
//
// What a search must know of the logits x weight^T + bias [R, V]: the highest of each row, one that
// is asked for by name, and what makes log-probabilities of them. With a packed weight the logits
// themselves are never all there: pieces of the vocabulary are computed, read while they lie in the
// cache, and forgotten.
//
//   log_normalizers[r] = log sum_v exp(logits[r, v] / temperatures[r]), over the whole vocabulary;
//                        NaN if a logit is NaN or +infinity, or if all are -infinity
//
//   x             [R, I]      float32 or bfloat16
//   weight        [V, I]      as linear takes it (linear.h), packed or not
//   bias          [V]         type of x
//   counts        [R]         int32, from 0 to V: how many of the row's highest logits are wanted
//   also          [R]         int32: a token whose logit is wanted whatever it is, or -1
//   temperatures  [R]         float32, above 0
//   logits, tokens [R, N + 1] float32 and int32, N the largest of counts. Row r holds its counts[r]
//                             highest logits, falling, of equal ones the lower token first; then
//                             that of also[r]; where there is nothing, -infinity and token -1
//   log_normalizers [R]       float32
//
// A row's result does not depend on the rows that are with it, on what is wanted of it, nor on the
// number of threads, bit for bit, where linear's does not. Only on the CPU; has no gradient. Throws
// c10::Error if a shape, type, count or token does not fit.
//
// Source: for the normalizer in pieces Milakov and Gimelshein 2018, Online normalizer calculation
// for softmax.
