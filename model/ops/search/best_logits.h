#pragma once

// torch.ops.linnet:
//   best_logits(Tensor x, Tensor weight, Tensor? bias, Tensor counts, Tensor also,
//               Tensor temperatures) -> (Tensor logits, Tensor tokens, Tensor log_normalizers)
//
// The part of the logits x weight^T + bias [R, V] that a search reads: the highest of each row, the
// logit of one given token, and the normalizer of the log-probabilities. With a packed weight the
// logits are never all in memory: each piece of the vocabulary is computed, read while it is in the
// cache, and dropped.
//
//   log_normalizers[r] = log sum_v exp(logits[r, v] / temperatures[r]), over the whole vocabulary;
//                        NaN if a logit is NaN or +infinity, or if all are -infinity
//
//   x             [R, I]      float32 or bfloat16
//   weight        [V, I]      as linear takes it (linear.h), packed or not
//   bias          [V]         type of x
//   counts        [R]         int32, from 0 to V: the number of the row's highest logits to return
//   also          [R]         int32: a token whose logit is returned in any case, or -1
//   temperatures  [R]         float32, above 0
//   logits, tokens [R, N + 1] float32 and int32, N the largest of counts. Row r holds its counts[r]
//                             highest logits in descending order, equal ones by ascending token;
//                             then that of also[r]; unused entries are -infinity and token -1
//   log_normalizers [R]       float32
//
// A row's result is batch invariant wherever that of linear is: bit for bit it does not depend on
// the other rows, on its count, nor on the number of threads. CPU only; has no gradient. Throws
// c10::Error if a shape, type, count or token does not fit.
//
// Source: for the normalizer in pieces Milakov and Gimelshein 2018, Online normalizer calculation
// for softmax.
