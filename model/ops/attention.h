#pragma once

#include <cstdint>

#include "model/ops/cpu/vectors.h"

// Scores and weighted sums of one attention head, from G positions to `count` others. The CPU
// kernels of attention share this file.
namespace linnet::ops {

// to = scale * from. The elements lie in the order in which Dots reads them: that of LoadMany, then
// the remaining ones one by one.
template <int W, class T>
LINNET_INLINE void LoadQuery(const T* from, int64_t count, float scale, float* to) {
  using V = Vectors<W>;
  int64_t c = 0;
  for (; c + 2 * W <= count; c += 2 * W) {
    typename V::Floats q[2];
    V::template LoadMany<2>(from + c, q);
    V::Store(q[0] * scale, to + c);
    V::Store(q[1] * scale, to + c + W);
  }
  for (; c < count; ++c) to[c] = ToFloat(from[c]) * scale;
}

// scores[g][n] = queries[g] . keys[n] for N keys. queries[g] begins `channels` after the one
// before, scores[g] `stride` after it. A score has the same bits for any N and G.
template <int W, int N, int G, class T>
LINNET_INLINE void Dots(const float* queries, const T* const* keys, int64_t channel,
                        int64_t channels, float* scores, int64_t stride) {
  using V = Vectors<W>;
  typename V::Floats sums[G][N] = {};
  int64_t c = 0;
  for (; c + 2 * W <= channels; c += 2 * W) {
    for (int n = 0; n < N; ++n) {
      typename V::Floats key[2];
      V::template LoadMany<2>(keys[n] + channel + c, key);
      for (int g = 0; g < G; ++g) {
        sums[g][n] += V::Load(queries + g * channels + c) * key[0];
        sums[g][n] += V::Load(queries + g * channels + c + W) * key[1];
      }
    }
  }
  for (int g = 0; g < G; ++g) {
    for (int n = 0; n < N; ++n) {
      float score = V::Sum(sums[g][n]);
      for (int64_t i = c; i < channels; ++i) {
        score += queries[g * channels + i] * ToFloat(keys[n][channel + i]);
      }
      scores[g * stride + n] = score;
    }
  }
}

// scores[i] = query . keys[i][channel ..] for i < count; LoadQuery wrote `query`.
template <int W, class T>
LINNET_INLINE void Scores(const float* query, const T* const* keys, int64_t count, int64_t channel,
                          int64_t head_size, float* scores) {
  constexpr int kTogether = 4;
  int64_t i = 0;
  for (; i + kTogether <= count; i += kTogether) {
    Dots<W, kTogether, 1>(query, keys + i, channel, head_size, scores + i, /*stride=*/0);
  }
  for (; i < count; ++i) Dots<W, 1, 1>(query, keys + i, channel, head_size, scores + i, 0);
}

// out[g][c] = sum_j weights[g][j] * rows(j)[c] for c < channels, j < count, with the bits of
// WeightedSum. weights[g] and out[g] begin `stride` and `out_stride` after the ones before.
template <int W, int G, class T, class Rows>
LINNET_INLINE void WeightedSums(const float* weights, int64_t stride, int64_t count,
                                const Rows& rows, int64_t channels, T* out, int64_t out_stride) {
  using V = Vectors<W>;
  constexpr int kMany = W == 16 ? 4 : 2;  // as many sums as the registers hold
  int64_t c = 0;
  for (; G > 1 && c + kMany * W <= channels; c += kMany * W) {
    typename V::Floats sums[G][kMany] = {};
    for (int64_t j = 0; j < count; ++j) {
      typename V::Floats row[kMany];
      V::template LoadMany<kMany>(rows(j) + c, row);
      for (int g = 0; g < G; ++g) {
        for (int i = 0; i < kMany; ++i) sums[g][i] += weights[g * stride + j] * row[i];
      }
    }
    for (int g = 0; g < G; ++g) {
      V::template StoreMany<kMany>(sums[g], out + g * out_stride + c);
    }
  }
  if (c == channels) return;
  const auto rest = [&](int64_t j) __attribute__((always_inline)) { return rows(j) + c; };
  for (int g = 0; g < G; ++g) {
    WeightedSum<W>(RowWeights{weights + g * stride}, count, rest, channels - c,
                   out + g * out_stride + c);
  }
}

}  // namespace linnet::ops
